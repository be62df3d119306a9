package report

import (
	"math"
	"strconv"
	"strings"
)

// The words for figures that are no numbers.
const (
	unlimited = "unlimited"
	unknown   = "unknown"
)

// rounded writes a value for people: three significant digits.
func rounded(v float64) string { return significant(v, 3) }

// cost writes an epsilon: four significant digits, rounded up, because a cost
// must not look smaller than it is. Dust of summed floats does not count.
func cost(v float64) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return significant(v, 4)
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-3)
	if unit == 0 || math.IsInf(unit, 0) {
		return significant(v, 4)
	}
	return significant(math.Ceil(v/unit-1e-6)*unit, 4)
}

// setting writes a value as it was configured.
func setting(v float64) string { return significant(v, 12) }

func significant(v float64, digits int) string {
	switch {
	case math.IsNaN(v):
		return unknown
	case math.IsInf(v, 1):
		return unlimited
	case math.IsInf(v, -1):
		return "−" + unlimited
	case v == 0:
		return "0"
	}
	// Rounded first: 9.9996 has four digits before the point is placed.
	mantissa, exponent := split(strconv.FormatFloat(v, 'e', digits-1, 64))
	if exponent < -3 || exponent > 6 {
		return minus(trimZeros(mantissa)) + "×10" + superscript(exponent)
	}
	return minus(grouped(trimZeros(strconv.FormatFloat(v, 'f', max(0, digits-1-exponent), 64))))
}

func split(scientific string) (mantissa string, exponent int) {
	mantissa, e, _ := strings.Cut(scientific, "e")
	exponent, _ = strconv.Atoi(e)
	return mantissa, exponent
}

func trimZeros(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}

// minus replaces the hyphen by the sign that has a digit's width.
func minus(s string) string { return strings.Replace(s, "-", "−", 1) }

// grouped puts commas between thousands.
func grouped(s string) string {
	start := 0
	if strings.HasPrefix(s, "-") {
		start = 1
	}
	end := strings.IndexByte(s, '.')
	if end < 0 {
		end = len(s)
	}
	if end-start < 5 { // 4096 reads well without
		return s
	}
	for i := end - 3; i > start; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func superscript(exponent int) string {
	digits := []rune("⁰¹²³⁴⁵⁶⁷⁸⁹")
	var b strings.Builder
	for _, c := range strconv.Itoa(exponent) {
		if c == '-' {
			b.WriteRune('⁻')
			continue
		}
		b.WriteRune(digits[c-'0'])
	}
	return b.String()
}

// count writes a whole number.
func count(n int) string { return minus(grouped(strconv.Itoa(n))) }

// counted writes a number with its noun: "1 client", "2 clients".
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + many
}
