package live

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// asked is a request and what is set beside it.
func asked(t *testing.T, h http.Handler, method, target, body string, set func(*http.Request)) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = "127.0.0.1:4321"
	if set != nil {
		set(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// TestDoorLetsInByTokenAlone goes by every way in.
func TestDoorLetsInByTokenAlone(t *testing.T) {
	source := &counted{}
	source.set(nil, Part{"a", "what is shown"})
	token := NewToken()
	door := NewDoor(token, New(source, "test"), "dash.example")
	inside := door.folder + "/"

	shows := func(r *http.Response) bool {
		text, _ := io.ReadAll(r.Body)
		return r.StatusCode == http.StatusOK && strings.Contains(string(text), "what is shown")
	}
	reply := asked(t, door, "POST", "/enter", string(token)+"\n", nil)
	if where, _ := io.ReadAll(reply.Body); reply.StatusCode != 200 || string(where) != inside {
		t.Fatalf("the token gets %d, %s", reply.StatusCode, where)
	}
	cookie := reply.Cookies()[0]
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != inside || strings.Contains(cookie.Value, string(token)) {
		t.Errorf("the cookie is %v", cookie)
	}
	if r := asked(t, door, "GET", inside, "", func(r *http.Request) { r.AddCookie(cookie) }); !shows(r) {
		t.Errorf("the cookie gets %d", r.StatusCode)
	}
	if r := asked(t, door, "GET", inside, "", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+string(token)) }); !shows(r) {
		t.Errorf("the token as a header gets %d", r.StatusCode)
	}

	other := NewToken()
	for name, c := range map[string]struct {
		method, target, body string
		set                  func(*http.Request)
		code                 int
	}{
		"nothing":                {"GET", inside, "", nil, 401},
		"the events":             {"GET", inside + eventsPath, "", nil, 401},
		"the calculator":         {"GET", inside + calculatorPath, "", nil, 401},
		"another token":          {"POST", "/enter", string(other), nil, 401},
		"no token":               {"POST", "/enter", "", nil, 401},
		"half a token":           {"POST", "/enter", string(token[:32]), nil, 401},
		"the token by GET":       {"GET", "/enter?" + string(token), "", nil, 404},
		"another cookie":         {"GET", inside, "", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: cookieName, Value: other.derived("cookie")}) }, 401},
		"the token as a cookie":  {"GET", inside, "", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: cookieName, Value: string(token)}) }, 401},
		"an empty word":          {"GET", inside, "", func(r *http.Request) { r.Header.Set("Authorization", "Bearer ") }, 401},
		"another name":           {"GET", inside, "", func(r *http.Request) { r.Host = "rebound.example:4321"; r.AddCookie(cookie) }, 403},
		"another name, to enter": {"POST", "/enter", string(token), func(r *http.Request) { r.Host = "rebound.example" }, 403},
		"from another site":      {"GET", inside, "", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site"); r.AddCookie(cookie) }, 403},
		"from another port":      {"GET", inside + calculatorPath, "", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site"); r.AddCookie(cookie) }, 403},
		"to change something":    {"POST", inside, "x", func(r *http.Request) { r.AddCookie(cookie) }, 405},
		"to delete something":    {"DELETE", inside + "report?at=x", "", func(r *http.Request) { r.AddCookie(cookie) }, 405},
		"elsewhere":              {"GET", "/other/", "", nil, 404},
		"before the folder":      {"GET", door.folder + "x/", "", func(r *http.Request) { r.AddCookie(cookie) }, 404},
	} {
		r := asked(t, door, c.method, c.target, c.body, c.set)
		text, _ := io.ReadAll(r.Body)
		if r.StatusCode != c.code || strings.Contains(string(text), "what is shown") || len(r.Cookies()) > 0 {
			t.Errorf("%s gets %d, want %d: %.200s", name, r.StatusCode, c.code, text)
		}
		if strings.Contains(string(text), string(token)) || strings.Contains(string(text), door.folder) {
			t.Errorf("%s is told the secret: %s", name, text)
		}
		headers(t, name, r)
	}
	for _, host := range []string{"127.0.0.1:1", "[::1]:80", "localhost:99", "LOCALHOST", "192.168.1.7:8000", "dash.example:1"} {
		if !door.knows(host) {
			t.Errorf("%s is refused", host)
		}
	}
	for _, host := range []string{"", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "dash.example.evil"} {
		if door.knows(host) {
			t.Errorf("%q is let in", host)
		}
	}
}

// headers are on every answer.
func headers(t *testing.T, what string, r *http.Response) {
	t.Helper()
	csp := r.Header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
		if !strings.Contains(csp, part) {
			t.Errorf("%s: the policy %q lacks %s", what, csp, part)
		}
	}
	for name := range r.Header {
		if strings.HasPrefix(name, "Access-Control") {
			t.Errorf("%s: %s", what, name)
		}
	}
	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s: %s is %q", what, name, got)
		}
	}
}

// TestKeptTokensStay: a server that is started again has the same address.
func TestKeptTokensStay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dash.url")
	first, err := KeptToken(path, "127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the address is in a file of mode %v, %v", info.Mode(), err)
	}
	second, err := KeptToken(path, "127.0.0.1:2")
	if err != nil || second != first || len(first) != 64 {
		t.Errorf("%q, then %q: %v", first, second, err)
	}
	if text, _ := os.ReadFile(path); string(text) != "http://127.0.0.1:2/#"+string(first)+"\n" {
		t.Errorf("the file says %q", text)
	}
	if err := os.WriteFile(path, []byte("http://127.0.0.1:1/#short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if third, err := KeptToken(path, "127.0.0.1:1"); err != nil || third == first || len(third) != 64 {
		t.Errorf("a token that is none becomes %q, %v", third, err)
	}
	if a, b := NewToken(), NewToken(); a == b {
		t.Error("two tokens are the same")
	}
}
