package draft

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// mark stands on every line of a run file whose value was taken from the data.
const mark = "  # not public: replace or pay"

// writer writes a YAML file line by line and keeps the keys of what is marked.
type writer struct {
	strings.Builder
	marked *[]string
}

func (w *writer) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

// taken is a line whose value was taken from the data.
func (w *writer) taken(path, format string, args ...any) {
	*w.marked = append(*w.marked, path)
	fmt.Fprintf(w, format+mark+"\n", args...)
}

// plainText needs no quotes in YAML, unless it is one of its words.
var plainText = regexp.MustCompile(`^[\p{L}_][\p{L}\p{N}_ .-]*$`)

var yamlWords = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf", ".inf", ".nan"}

// quoted is a text as YAML reads it back, wherever it stands.
func quoted(s string) string {
	if plainText.MatchString(s) && !strings.HasSuffix(s, " ") && !slices.Contains(yamlWords, strings.ToLower(s)) {
		return s
	}
	var b strings.Builder
	e := json.NewEncoder(&b) // JSON's texts are YAML's
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return strconv.Quote(s)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func quotedList(values []string) string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = quoted(v)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

func rangeText(r []float64) string { return "[" + number(r[0]) + ", " + number(r[1]) + "]" }

func number(v float64) string {
	text := strings.Replace(strconv.FormatFloat(v, 'g', -1, 64), "e-0", "e-", 1)
	if before, after, small := strings.Cut(text, "e"); small && !strings.Contains(before, ".") {
		return before + ".0e" + after // YAML 1.1 reads 1e-5 as text
	}
	return text
}

// comment keeps a text from ending the line that it stands on.
func comment(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 {
			return ' '
		}
		return r
	}, s)
}
