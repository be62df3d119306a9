package identity

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// SuccessionHeader tells with every answer how many authorities the federation has had
// before the one that it has. Who knows of fewer asks for SuccessionPath.
const SuccessionHeader = "Coterie-Succession"

// SuccessionPath is where a server tells how its federation came to its authority. It is
// open: the invited need it before they have a certificate, and it holds nothing but
// certificates and public keys.
const SuccessionPath = "/succession"

// announce says how often the federation's keys were rotated, if they were.
func (a *Authority) announce(h http.Header) {
	if k, err := a.current(); err == nil && k.number > 0 {
		h.Set(SuccessionHeader, strconv.Itoa(k.number))
	}
}

// ServeSuccessions answers at SuccessionPath.
func (a *Authority) ServeSuccessions(w http.ResponseWriter, _ *http.Request) {
	all, err := a.Successions()
	if err != nil {
		refuse(w, err)
		return
	}
	if all == nil {
		all = []Succession{}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(all) // a client that is gone needs none
}

// Announced is what a server's answer says: 0 if it says nothing, or no number.
func Announced(h http.Header) int {
	n, err := strconv.Atoi(h.Get(SuccessionHeader))
	if err != nil || n < 0 {
		return 0
	}
	return n
}
