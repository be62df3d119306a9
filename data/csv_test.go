package data

import (
	"bytes"
	"encoding/csv"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// records splits a text whole, or in two halves as a reader of blocks does.
func records(text []byte, separator byte, faults *int) (all [][]string) {
	s := Splitter{Separator: separator}
	for len(text) > 0 {
		n, err := s.Next(text, false)
		text = text[n:]
		if err != nil {
			*faults++
			continue
		}
		if len(s.Cells) == 1 && !s.Quoted && len(bytes.TrimRight(s.Cells[0], "\r")) == 0 {
			continue
		}
		var cells []string
		for i, c := range s.Cells {
			if i == len(s.Cells)-1 {
				c = bytes.TrimSuffix(c, []byte("\r"))
			}
			cells = append(cells, string(c))
		}
		all = append(all, cells)
	}
	return all
}

// TestSplitterAgreesWithEncodingCSV: what the standard library writes and reads, with any
// separator, quotes, line breaks and line ends, comes out the same.
func TestSplitterAgreesWithEncodingCSV(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		separator := rapid.SampledFrom([]byte{',', ';', '\t'}).Draw(t, "separator")
		columns := rapid.IntRange(1, 9).Draw(t, "columns")
		cell := rapid.OneOf(rapid.StringMatching(`[a-z0-9. ]{0,12}`), rapid.StringMatching("[a\",;\t\n ]{0,8}"), rapid.Just(""))
		var b bytes.Buffer
		w := csv.NewWriter(&b)
		w.Comma, w.UseCRLF = rune(separator), rapid.Bool().Draw(t, "crlf")
		for range rapid.IntRange(0, 9).Draw(t, "rows") {
			row := rapid.SliceOfN(cell, columns, columns).Draw(t, "row")
			if err := w.Write(row); err != nil {
				t.Fatal(err)
			}
		}
		w.Flush()
		r := csv.NewReader(bytes.NewReader(b.Bytes()))
		r.Comma, r.FieldsPerRecord = rune(separator), -1
		want, err := r.ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		faults := 0
		got := records(bytes.ReplaceAll(b.Bytes(), []byte("\r\n"), []byte("\n")), separator, &faults)
		if faults > 0 || !slices.EqualFunc(got, want, slices.Equal) {
			t.Fatalf("%q: %d faults\n got %q\nwant %q", b.String(), faults, got, want)
		}
		if got := records(b.Bytes(), separator, &faults); !strings.Contains(b.String(), `"`) && !slices.EqualFunc(got, want, slices.Equal) {
			t.Fatalf("%q:\n got %q\nwant %q", b.String(), got, want)
		}
	})
}

func TestStrayQuotesSpoilOneRecord(t *testing.T) {
	for text, want := range map[string]struct {
		faults int
		rows   string
	}{
		"a,b\n1,\"2\n3,4\n":             {1, "a b|3 4"},
		"a,b\n1,2\"\n3,4\n":             {1, "a b|3 4"},
		"a,b\n1,\"2\"x\n3,4\n":          {1, "a b|3 4"},
		"a,b\n1, \"2\"\n3,4\n":          {1, "a b|3 4"},
		"a,b\n\"1\n\n2\",3\n":           {0, "a b|1\n\n2 3"},
		"a,b\r\n\"1\",\"2\"\r\n\r\n3,4": {0, "a b|1 2|3 4"},
		"a,\"\"\"\"\n":                  {0, "a \""},
		"\"a\",\"":                      {1, ""},
	} {
		faults := 0
		var rows []string
		for _, r := range records([]byte(text), ',', &faults) {
			rows = append(rows, strings.Join(r, " "))
		}
		if got := strings.Join(rows, "|"); faults != want.faults || got != want.rows {
			t.Errorf("%q: %d faults, %q; want %d, %q", text, faults, got, want.faults, want.rows)
		}
	}
	s := Splitter{Separator: ','}
	long := append(bytes.Repeat([]byte("x"), MaxRecord), "\n"...)
	if _, err := s.Next(long, false); !errors.Is(err, ErrLongRecord) {
		t.Errorf("a long record: %v", err)
	}
	if n, err := s.Next(slices.Concat([]byte("\"a\n"), long, long), false); n != 3 || !errors.Is(err, ErrQuote) {
		t.Errorf("a quote that is not closed: %d, %v", n, err)
	}
	if n, err := s.Next(long[1:], false); n != MaxRecord || err != nil {
		t.Errorf("the longest record: %d, %v", n, err)
	}
}

// FuzzSplitter: a text that comes in two parts is split as one that comes whole, nothing
// is lost, and records go on until the text ends.
func FuzzSplitter(f *testing.F) {
	f.Add([]byte("a,b\n1,2\n"), byte(','), uint16(3))
	f.Add([]byte("a;\"b;\"\"\n\"\r\n1;2"), byte(';'), uint16(6))
	f.Add([]byte("\"a\"x\n\"\n,\n\"b\r\r\n"), byte(','), uint16(2))
	f.Fuzz(func(t *testing.T, text []byte, separator byte, half uint16) {
		if separator == '"' || separator == '\n' || separator == '\r' {
			return
		}
		whole := Splitter{Separator: separator}
		parts := Splitter{Separator: separator}
		for at := 0; at < len(text); {
			n, err := whole.Next(text[at:], false)
			if n <= 0 || at+n > len(text) {
				t.Fatalf("%d bytes of %d", n, len(text)-at)
			}
			seen := min(at+int(half)%(len(text)-at+1), len(text))
			again, errAgain := parts.Next(text[at:seen], true)
			if again != 0 && (again != n || !errors.Is(errAgain, err)) {
				t.Fatalf("%q, of which %q is seen: %d, %v instead of %d, %v", text[at:], text[at:seen], again, errAgain, n, err)
			}
			if again == 0 && seen-at > n && err == nil { // an open quote may yet be closed
				t.Fatalf("%q, of which %q is seen: more is asked for", text[at:], text[at:seen])
			}
			at += n
		}
	})
}

// FuzzParseNumber: every number is the one that strconv reads, bit for bit.
func FuzzParseNumber(f *testing.F) {
	for _, s := range []string{"0", "-0", "+1.5", "1e-5", ".5", "5.", "9007199254740993", "0.1234567890123456789", "1e400", "--1", "1_0", "0x1p3", "inf", "NaN", "1e", "."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) { checkNumber(t, text) })
}

func checkNumber(t *testing.T, text string) {
	t.Helper()
	want, err := strconv.ParseFloat(text, 64)
	ok := err == nil && !math.IsInf(want, 0) && !strings.ContainsAny(text, "_xXpPiInN")
	got, gotOK := ParseNumber([]byte(text))
	if gotOK != ok || ok && math.Float64bits(got) != math.Float64bits(want) {
		t.Fatalf("%q: %v, %v; want %v, %v", text, got, gotOK, want, ok)
	}
}

func TestParseNumberIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		v := math.Float64frombits(r.Uint64())
		checkNumber(t, strconv.FormatFloat(v, 'g', -1, 64))
		checkNumber(t, strconv.FormatFloat(r.NormFloat64()*1e3, 'f', r.IntN(19), 64))
		checkNumber(t, strconv.FormatInt(r.Int64()>>r.IntN(63), 10)+"."+strconv.Itoa(r.IntN(1e6)))
	}
}
