package operator

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coterie-fl/coterie/federation/identity"
	"github.com/coterie-fl/coterie/federation/plan"
)

func TestWhereAListenerIsReached(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:7443": "127.0.0.1:7443", "0.0.0.0:7443": "127.0.0.1:7443", ":7443": "127.0.0.1:7443", "[::]:7443": "[::1]:7443",
		"fl.example.org:7443": "fl.example.org:7443", "[fe80::1]:7443": "[fe80::1]:7443", "127.0.0.1:0": "", "7443": "", "": "",
	} {
		got, err := local(listen)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q is reached at %q (%v), want %q", listen, got, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), "--server host:port") {
			t.Errorf("%q: %v does not say what to do", listen, err)
		}
	}
}

// answer is a server that always says the same.
type answer struct {
	code int
	text string
}

func (a answer) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.code, Body: io.NopCloser(strings.NewReader(a.text)), Header: http.Header{}}, nil
}

// TestStrangeAnswersAreTold: what is no status is an error that names the server.
func TestStrangeAnswersAreTold(t *testing.T) {
	for _, c := range []struct {
		answer
		want string
	}{
		{answer{200, `{"run_id": "r"}`}, ""},
		{answer{200, `{"run_id": `}, "another release"},
		{answer{200, `{"run_id": 7}`}, "another release"},
		{answer{404, "404 page not found"}, "older release"},
		{answer{403, `{"code":"permission_denied","message":"watch is revoked"}`}, "watch is revoked"},
		{answer{503, "busy"}, "busy"},
		{answer{503, strings.Repeat("x", 10_000)}, "xxx"},
	} {
		o := &Operator{address: "fl.example.org:7443", connect: func(context.Context) (http.RoundTripper, *http.Transport, time.Time, error) {
			return c.answer, new(http.Transport), time.Now().Add(time.Hour), nil
		}}
		st, err := o.Status(t.Context())
		o.Close()
		if c.want == "" {
			if err != nil || st.RunID != "r" {
				t.Errorf("%+v, %v", st, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "fl.example.org:7443") || len(err.Error()) > 500 {
			t.Errorf("%d %.50s: %v; want %q", c.code, c.text, err, c.want)
		}
	}
}

// TestACertificateForMinutesIsMadeAnew: somebody who watches for an hour shows a fresh
// one in time, and asks for no more than that.
func TestACertificateForMinutesIsMadeAnew(t *testing.T) {
	dir := t.TempDir()
	if _, err := identity.Init(dir, identity.Options{}); err != nil {
		t.Fatal(err)
	}
	o, err := AtServer(plan.ServeFile{CA: dir, Listen: "127.0.0.1:1"}, "")
	if err != nil {
		t.Fatal(err)
	}
	made, connect := 0, o.connect
	o.connect = func(ctx context.Context) (http.RoundTripper, *http.Transport, time.Time, error) {
		made++
		_, under, until, err := connect(ctx)
		return answer{200, "{}"}, under, until, err
	}
	for range 3 {
		if _, err := o.Status(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if left := time.Until(o.until); made != 1 || left < time.Minute || left > 4*time.Minute {
		t.Errorf("%d certificates for three looks; the next one in %v", made, left)
	}
	o.until = time.Now().Add(-time.Second)
	if _, err := o.Status(t.Context()); err != nil || made != 2 {
		t.Errorf("%d certificates after the first was due: %v", made, err)
	}
	o.Close()
}

// TestTheFirstQuestionWaits for a server that is being started; later ones do not.
func TestTheFirstQuestionWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, asked := time.Now(), 0
		o := &Operator{address: "fl.example.org:7443", connect: func(context.Context) (http.RoundTripper, *http.Transport, time.Time, error) {
			return starting{&asked, began.Add(time.Second)}, new(http.Transport), began.Add(time.Hour), nil
		}}
		if _, err := o.Status(t.Context()); err != nil || time.Since(began) > 2*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		o.way = starting{&asked, began.Add(time.Hour)}
		asked = 0
		if _, err := o.Status(t.Context()); err == nil || asked != 1 || !strings.Contains(err.Error(), "does not run") {
			t.Errorf("asked %d times: %v", asked, err)
		}
		never := &Operator{address: "fl.example.org:7443", connect: o.connect, way: o.way, until: began.Add(time.Hour)}
		began = time.Now()
		if _, err := never.Status(t.Context()); err == nil || time.Since(began) < arrival || time.Since(began) > arrival+time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// starting is a server that is reached from some time on.
type starting struct {
	asked *int
	from  time.Time
}

func (s starting) RoundTrip(q *http.Request) (*http.Response, error) {
	*s.asked++
	if time.Now().Before(s.from) {
		return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	}
	return answer{200, "{}"}.RoundTrip(q)
}
