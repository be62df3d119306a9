// Package operator asks a federation's server how it stands, in an operator's name.
package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/participant"
	"github.com/coterie-fl/coterie/federation/plan"
	"github.com/coterie-fl/coterie/federation/server"
	"github.com/coterie-fl/coterie/federation/transfer"
)

// askTime is how long one question may take.
const askTime = 10 * time.Second

// maxStatus is more than the status of the largest federation has.
const maxStatus = 64 << 20

// Operator asks one server, again and again if need be. It is for one goroutine.
type Operator struct {
	address string
	// connect makes a way to the server, and says until when it is good.
	connect func(context.Context) (http.RoundTripper, *http.Transport, time.Time, error)
	way     http.RoundTripper
	under   *http.Transport
	until   time.Time
	asked   bool // somebody has answered, or nobody for long
}

// AtServer asks the server of a file, by the authority's folder that the file names: no
// enrolment is needed, since whoever has the folder can let anybody in. Without an
// address it is the file's own.
func AtServer(f plan.ServeFile, address string) (*Operator, error) {
	a, err := identity.Open(f.CA, identity.Options{})
	if err != nil {
		return nil, err
	}
	if address == "" {
		if address, err = local(f.Listen); err != nil {
			return nil, err
		}
	}
	return &Operator{address: address, connect: func(context.Context) (http.RoundTripper, *http.Transport, time.Time, error) {
		config, until, err := a.OperatorTLS()
		if err != nil {
			return nil, nil, until, err
		}
		way, under := participant.NewPassage(config, nil)
		return way, under, until, nil
	}}, nil
}

// local is where this machine reaches a listener.
func local(listen string) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil || port == "" || port == "0" {
		return "", fmt.Errorf("the server listens on %q, which does not tell its port: name it with --server host:port", listen)
	}
	switch ip := net.ParseIP(host); {
	case host == "", ip != nil && ip.Equal(net.IPv4zero):
		host = "127.0.0.1"
	case ip != nil && ip.IsUnspecified():
		host = "::1"
	}
	return net.JoinHostPort(host, port), nil
}

// Enrolled asks with the identity in a folder, which an operator's invitation has filled.
// Without an address it is the invitation's. The certificate is renewed in time.
func Enrolled(dir, address string, log *slog.Logger) (*Operator, error) {
	m, err := identity.OpenMember(dir)
	if err != nil {
		return nil, err
	}
	if m.Role() != identity.Operator {
		return nil, fmt.Errorf("%s is the identity of %s %q: only operators are told the status; invite one with `coterie ca invite NAME --operator`", dir, m.Role(), m.Name())
	}
	if address == "" {
		address = m.Server()
	}
	way, under, renew, err := participant.Connect(m, address, log)
	if err != nil {
		return nil, err
	}
	return &Operator{address: address, connect: func(ctx context.Context) (http.RoundTripper, *http.Transport, time.Time, error) {
		return way, under, time.Now().Add(renewEvery), renew(ctx)
	}}, nil
}

// renewEvery is how often somebody who watches makes sure to stay enrolled.
const renewEvery = time.Minute

// Address is that of the server.
func (o *Operator) Address() string { return o.address }

// Close lets go of the connection.
func (o *Operator) Close() {
	if o.under != nil {
		o.under.CloseIdleConnections()
	}
}

// Status asks the server how it stands.
func (o *Operator) Status(ctx context.Context) (server.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var st server.Status
	if time.Now().After(o.until) {
		o.Close()
		way, under, until, err := o.connect(ctx)
		if err != nil {
			return st, err
		}
		o.way, o.under, o.until = way, under, until
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+o.address+server.StatusPath, nil)
	if err != nil {
		return st, fmt.Errorf("ask %s: %w", o.address, err)
	}
	reply, err := o.ask(q)
	if err != nil {
		return st, o.explain(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(io.LimitReader(reply.Body, maxStatus))
	if err != nil {
		return st, fmt.Errorf("read the status of %s: %w", o.address, err)
	}
	if reply.StatusCode != http.StatusOK {
		return st, refused(o.address, reply.StatusCode, text)
	}
	if err := json.Unmarshal(text, &st); err != nil {
		return st, fmt.Errorf("the status of %s cannot be read: is it of another release? %w", o.address, err)
	}
	return st, nil
}

// arrival is how long the first question waits for a server that nobody answers for yet:
// it may have been started a moment ago. Within that time it is asked every askAgain.
const (
	arrival  = 3 * time.Second
	askAgain = 100 * time.Millisecond
)

// ask makes the request, the first one for some time.
func (o *Operator) ask(q *http.Request) (*http.Response, error) {
	client := &http.Client{Transport: o.way}
	for began := time.Now(); ; {
		reply, err := client.Do(q)
		if err == nil || o.asked || !nobody(err) || time.Since(began) > arrival {
			o.asked = true
			return reply, err
		}
		if transfer.Wait(q.Context(), nil, askAgain) != nil {
			return nil, err
		}
	}
}

// nobody says that there was no server to connect to.
func nobody(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) && dial.Op == "dial"
}

// explain says what to do if nobody answers.
func (o *Operator) explain(err error) error {
	if nobody(err) {
		return fmt.Errorf("no server answers at %s: it does not run, or listens elsewhere (--server host:port): %w", o.address, err)
	}
	return fmt.Errorf("ask %s for its status: %w", o.address, err)
}

// refused is what the server says if it does not tell.
func refused(address string, code int, text []byte) error {
	var told struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(text, &told) != nil || told.Message == "" {
		told.Message = string(text[:min(len(text), 200)])
	}
	if code == http.StatusNotFound {
		told.Message = "it knows no status; is it of an older release?"
	}
	return fmt.Errorf("%s does not tell its status (%s): %s", address, http.StatusText(code), told.Message)
}
