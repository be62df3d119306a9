package prose

import (
	"math"
	"testing"
)

func TestNumbersForPeople(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Rounded(0.59712), "0.597"}, {Rounded(3.0561), "3.06"}, {Rounded(1466.2), "1466"}, {Rounded(12345678), "1.23×10⁷"},
		{Rounded(1234567), "1,234,567"}, {Rounded(0.000012), "1.2×10⁻⁵"}, {Rounded(-2.5), "−2.5"}, {Rounded(0), "0"},
		{Rounded(9.9996), "10"}, {Rounded(math.NaN()), "unknown"}, {Rounded(math.Inf(1)), "unlimited"},
		{Cost(0.4 + 0.4 + 0.4 + 0.4 + 0.4 + 0.4), "2.4"}, {Cost(2.40001), "2.401"}, {Cost(math.Inf(1)), "unlimited"},
		{Cost(0), "0"}, {Cost(120659), "120,700"}, {Cost(1e-310), "1×10⁻³¹⁰"}, {Count(10000), "10,000"}, {Count(4096), "4096"}, {Count(-3), "−3"},
		{Fixed(-0.001, 1), "0.0"}, {Fixed(12345.678, 2), "12,345.68"}, {Counted(1, "client", "clients"), "1 client"}, {Counted(0, "client", "clients"), "0 clients"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
