package event

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Statement is what is said to people about a guarantee: the same object in
// every output.
type Statement struct {
	Claim      Claim    `json:"claim"`
	Unit       Unit     `json:"unit"`
	Relation   Relation `json:"relation"`
	Trust      Trust    `json:"trust"`
	Epsilon    Number   `json:"epsilon"`
	Delta      Number   `json:"delta"`
	Sampling   string   `json:"sampling"`
	Radius     *Number  `json:"radius"` // null: no public radius
	NotCovered []string `json:"not_covered"`
	// EpsilonSwitch is the loss between any two data sets, where a ledger says it of
	// d-private releases at a public radius: what is promised against a server that
	// chooses the radius and the hypotheses as it likes.
	EpsilonSwitch *Number `json:"epsilon_switch,omitempty"`
}

// Number is a float64 whose infinity is written "inf". NaN cannot be written.
type Number float64

// MarshalJSON writes the number, or "inf".
func (n Number) MarshalJSON() ([]byte, error) {
	switch f := float64(n); {
	case math.IsNaN(f):
		return nil, fmt.Errorf("a figure is not a number")
	case math.IsInf(f, 1):
		return []byte(`"inf"`), nil
	case math.IsInf(f, -1):
		return []byte(`"-inf"`), nil
	default:
		return json.Marshal(f)
	}
}

// UnmarshalJSON reads what MarshalJSON writes.
func (n *Number) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case `"inf"`:
		*n = Number(math.Inf(1))
		return nil
	case `"-inf"`:
		*n = Number(math.Inf(-1))
		return nil
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return fmt.Errorf("%s is neither a number nor \"inf\"", b)
	}
	*n = Number(f)
	return nil
}
