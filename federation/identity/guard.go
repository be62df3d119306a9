package identity

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
)

// Guard lets only admitted participants through to next, request by request, and
// tells it who they are. Paths in public are open to connections without a
// certificate; whatever is not named there is closed.
func Guard(a *Authority, next http.Handler, public ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peer, err := a.Admit(r.TLS)
		switch {
		case err == nil:
			r = r.WithContext(WithPeer(r.Context(), peer))
		case !slices.Contains(public, r.URL.Path):
			refuse(w, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ReasonHeader carries the reason of a refusal beside its message.
const ReasonHeader = "Coterie-Reason"

// The reasons why a certificate is not accepted. ReasonOutdated goes with ErrOutdated: it
// may be the server's clock that is wrong, and then it passes. ReasonRevoked goes with
// ErrRevoked and ErrWrongCertificate, which do not.
const (
	ReasonOutdated = "outdated"
	ReasonRevoked  = "revoked"
)

// refusal says whether err is about the certificate. Otherwise the registry could not be
// read: nobody is let in, but nobody is told to go for good either.
func refusal(err error) bool {
	return errors.Is(err, ErrNoCertificate) || errors.Is(err, ErrWrongCertificate) || errors.Is(err, ErrOutdated) || errors.Is(err, ErrRevoked)
}

// refuse answers as Connect does, which other clients understand by the status.
func refuse(w http.ResponseWriter, err error) {
	code, status := "permission_denied", http.StatusForbidden
	switch {
	case errors.Is(err, ErrNoCertificate):
		code, status = "unauthenticated", http.StatusUnauthorized
	case errors.Is(err, ErrOutdated):
		w.Header().Set(ReasonHeader, ReasonOutdated)
	case !refusal(err):
		code, status, err = "unavailable", http.StatusServiceUnavailable, errors.New("the server cannot check certificates now; try again")
	default:
		w.Header().Set(ReasonHeader, ReasonRevoked)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}{code, err.Error()})
}

type peerKey struct{}

// PeerFrom is the admitted participant of a request.
func PeerFrom(ctx context.Context) (Peer, bool) {
	p, ok := ctx.Value(peerKey{}).(Peer)
	return p, ok
}

// WithPeer names the participant of a request.
func WithPeer(ctx context.Context, p Peer) context.Context {
	return context.WithValue(ctx, peerKey{}, p)
}
