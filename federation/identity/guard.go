package identity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Paths say who may ask for what. Whatever is named nowhere is for participants alone. A name
// of Operators that ends in a slash stands for all below it.
type Paths struct {
	Public    []string // open to connections without a certificate
	Operators []string // for operators alone
	Members   []string // for participants and operators
}

// allow says whether a member may ask for a path.
func (p Paths) allow(peer Peer, path string) error {
	wanted := Participant
	switch {
	case slices.Contains(p.Public, path), slices.Contains(p.Members, path):
		return nil
	case slices.ContainsFunc(p.Operators, func(name string) bool {
		return name == path || strings.HasSuffix(name, "/") && strings.HasPrefix(path, name)
	}):
		wanted = Operator
	}
	if peer.Role != wanted {
		return fmt.Errorf("%w: %s is %s %s, and %s is for %ss", ErrRole, peer.Name, article(peer.Role), peer.Role, path, wanted)
	}
	return nil
}

// Guard lets only admitted members through to next, request by request, each to the
// paths of its role, and tells next who they are.
func Guard(a *Authority, next http.Handler, paths Paths) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.announce(w.Header())
		peer, err := a.Admit(r.TLS)
		switch {
		case err == nil:
			if err := paths.allow(peer, r.URL.Path); err != nil {
				refuse(w, err)
				return
			}
			r = r.WithContext(WithPeer(r.Context(), peer))
		case !slices.Contains(paths.Public, r.URL.Path):
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
	case errors.Is(err, ErrRole): // nothing is wrong with the certificate
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

// PeerFrom is the admitted member of a request.
func PeerFrom(ctx context.Context) (Peer, bool) {
	p, ok := ctx.Value(peerKey{}).(Peer)
	return p, ok
}

// WithPeer names the member of a request.
func WithPeer(ctx context.Context, p Peer) context.Context {
	return context.WithValue(ctx, peerKey{}, p)
}
