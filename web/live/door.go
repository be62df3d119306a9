package live

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	_ "embed" // the page of the door
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/internal/durable"
	"github.com/coterie-fl/coterie/report/layout"
)

//go:embed door.gohtml
var doorText string

//go:embed door.js
var doorScript string

var doorTemplate = parsed(doorText)

// Token is what lets somebody see a page: 32 bytes of entropy in hexadecimal digits.
type Token string

const tokenBytes = 32

// NewToken draws one.
func NewToken() Token {
	var b [tokenBytes]byte
	rand.Read(b[:]) // does not fail: it ends the program
	return Token(hex.EncodeToString(b[:]))
}

// KeptToken is the token of the address that a file holds, for a page at host:port that is
// started again and again. Without the file one is drawn; only the file's owner can read it.
func KeptToken(path, at string) (Token, error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the address of the live page: %w", err)
	}
	_, said, _ := strings.Cut(strings.TrimSpace(string(text)), "#")
	t := Token(said)
	if raw, err := hex.DecodeString(said); err != nil || len(raw) != tokenBytes {
		t = NewToken()
	}
	return t, durable.WriteFile(path, []byte(t.address(at)+"\n"), 0o600)
}

// address is what to open in a browser, at host:port. The fragment stays in the browser.
func (t Token) address(at string) string { return "http://" + at + "/#" + string(t) }

// derived is a value for one purpose, from which the token cannot be found.
func (t Token) derived(purpose string) string {
	h := hmac.New(sha256.New, []byte(t))
	_, _ = io.WriteString(h, purpose) // a hash does not fail
	return hex.EncodeToString(h.Sum(nil))
}

// Door lets in who has the token, once by the address that was printed, then by a cookie. The
// page hangs below a folder that the token names, and the cookie is for that folder alone:
// browsers show a machine's cookies to every port of it, and so no other program on this
// machine is shown this one.
type Door struct {
	token  Token
	names  []string // hosts that it may be asked as, beside addresses
	folder string
	page   http.Handler
}

const (
	enterPath    = "/enter"
	doorScriptAt = "/door.js"
	doorStyleAt  = "/door.css"
	cookieName   = "coterie-dash"
)

// NewDoor stands before a page. Names are hosts that it may be asked as: localhost and any
// number address are, other names could be anybody's that lead a browser here.
func NewDoor(t Token, page http.Handler, names ...string) *Door {
	folder := "/" + t.derived("folder")[:20]
	return &Door{token: t, names: append(names, "localhost"), folder: folder, page: http.StripPrefix(folder, page)}
}

// Address is what to open in a browser, at host:port.
func (d *Door) Address(at string) string { return d.token.address(at) }

// knows says whether a request came by a name of ours, or by a number: a page elsewhere can
// make its own name lead here (DNS rebinding), not a number.
func (d *Door) knows(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	return slices.Contains(d.names, strings.ToLower(host))
}

// stranger says whether another site's page made the browser ask. Following a link that was
// typed or opened by hand is none.
func stranger(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return false
	}
	return true
}

// same compares without telling by its time where two differ.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// ServeHTTP lets somebody through, or says where the address is printed.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secured(w, policy)
	if !d.knows(r.Host) || stranger(r) && r.URL.Path != "/" {
		http.Error(w, "this page is asked for by another name or from another site than its own", http.StatusForbidden)
		return
	}
	switch {
	case r.URL.Path == enterPath && r.Method == http.MethodPost:
		d.enter(w, r)
	case r.URL.Path == doorScriptAt:
		serveText(w, "text/javascript; charset=utf-8", []byte(doorScript))
	case r.URL.Path == doorStyleAt:
		serveText(w, "text/css; charset=utf-8", []byte(layout.Style()+styleText))
	case r.URL.Path == d.folder+"/" || strings.HasPrefix(r.URL.Path, d.folder+"/"):
		if !d.admitted(r) {
			d.show(w, http.StatusUnauthorized)
			return
		}
		d.page.ServeHTTP(w, r)
	case r.URL.Path == "/" && r.Method == http.MethodGet:
		d.show(w, http.StatusOK)
	default:
		d.show(w, http.StatusNotFound)
	}
}

// admitted is who has the cookie, or, being a program, sends the token itself.
func (d *Door) admitted(r *http.Request) bool {
	if word, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return same(word, string(d.token))
	}
	cookie, err := r.Cookie(cookieName)
	return err == nil && same(cookie.Value, d.token.derived("cookie"))
}

// enter changes the token for the cookie, and says where the page is.
func (d *Door) enter(w http.ResponseWriter, r *http.Request) {
	said, err := io.ReadAll(io.LimitReader(r.Body, 1<<10))
	if err != nil || !same(strings.TrimSpace(string(said)), string(d.token)) {
		http.Error(w, "this is not the token of this page: it may be of an earlier one", http.StatusUnauthorized)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: d.token.derived("cookie"), Path: d.folder + "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	serveText(w, "text/plain; charset=utf-8", []byte(d.folder+"/"))
}

// show is the page of who is not in yet. It holds nothing.
func (d *Door) show(w http.ResponseWriter, code int) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_ = layout.Write(w, doorTemplate(), struct{ Title string }{"Coterie"}) // the reader may be gone
}
