// Package prose writes numbers, lists and names as a reader expects them.
package prose

import (
	"cmp"
	"math"
	"strconv"
	"strings"
)

// Unknown stands for a figure that is not a number.
const Unknown = "unknown"

const unlimited = "unlimited" // an infinite figure

// Rounded writes a value for people: three significant digits.
func Rounded(v float64) string { return Significant(v, 3) }

// Cost writes an epsilon: four significant digits, rounded up, because a cost
// must not look smaller than it is. Dust of summed floats does not count.
func Cost(v float64) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return Significant(v, 4)
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-3)
	if unit == 0 || math.IsInf(unit, 0) {
		return Significant(v, 4)
	}
	return Significant(math.Ceil(v/unit-1e-6)*unit, 4)
}

// Setting writes a value as it was configured.
func Setting(v float64) string { return Significant(v, 12) }

// Significant writes a value with so many significant digits.
func Significant(v float64, digits int) string {
	switch {
	case math.IsNaN(v):
		return Unknown
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
		return minus(trimZeros(mantissa)) + PowerOfTen(exponent)
	}
	return minus(grouped(trimZeros(strconv.FormatFloat(v, 'f', max(0, digits-1-exponent), 64))))
}

// Fixed writes a value with so many decimals; there is no negative zero.
func Fixed(v float64, decimals int) string {
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Trim(s, "-0.") == "" {
		s = strings.TrimPrefix(s, "-")
	}
	return minus(grouped(s))
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

// PowerOfTen is what a number is multiplied by: "×10⁶".
func PowerOfTen(exponent int) string {
	digits := []rune("⁰¹²³⁴⁵⁶⁷⁸⁹")
	var b strings.Builder
	b.WriteString("×10")
	for _, c := range strconv.Itoa(exponent) {
		if c == '-' {
			b.WriteRune('⁻')
			continue
		}
		b.WriteRune(digits[c-'0'])
	}
	return b.String()
}

// Count writes a whole number.
func Count(n int) string { return minus(grouped(strconv.Itoa(n))) }

// Counted writes a number with its noun: "1 client", "2 clients".
func Counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + many
}

// Joined writes a list: "a, b and c".
func Joined(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// methodNames are the methods' names for readers.
var methodNames = map[string]string{
	"local": "Local training", "fedavg": "FedAvg", "finetune": "Local fine-tuning", "ditto": "Ditto", "mocha": "Mocha",
	"ifca": "IFCA", "mr-mtl": "MR-MTL", "central": "Central training",
}

// Method is a method's name for readers; one without is called by its key.
func Method(kind string) string { return cmp.Or(methodNames[kind], kind) }

// Optional writes a figure that not everything has; nothing where it is missing.
func Optional[T any](v *T, write func(T) string) string {
	if v == nil {
		return ""
	}
	return write(*v)
}
