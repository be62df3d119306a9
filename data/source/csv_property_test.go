package source

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

// TestCSVAgainstEncodingCSV: random tables, as spreadsheets and programs write them, are
// read as the standard library reads them.
func TestCSVAgainstEncodingCSV(t *testing.T) {
	d := ward("")
	folder := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		separator := rapid.SampledFrom([]rune{',', ';', '\t'}).Draw(t, "separator")
		pick := func(values ...string) string { return values[r.IntN(len(values))] }
		var table bytes.Buffer
		if rapid.Bool().Draw(t, "mark") {
			table.WriteString(byteOrderMark)
		}
		w := csv.NewWriter(&table)
		w.Comma, w.UseCRLF = separator, rapid.Bool().Draw(t, "crlf")
		header := []string{"site", "ill", " age ", "ward", "bmi", "smoker", "sex", "note, free", "x"}
		rows := [][]string{header}
		for range rapid.IntRange(0, 60).Draw(t, "rows") {
			rows = append(rows, []string{pick("N", "S", " W \t"), pick("yes", "no", "1", "0"), pick("", " ")[:0] + fmt.Sprint(r.IntN(150)), pick("A", "B", "C", "", "NA"),
				pick("22.5", "?", "1e2", "-3.25"), pick("true", "no", "Y"), pick("f", "m", "x", ""), pick("", "plain", "a;b,\tc", "two\nlines", `say "so"`, " "), pick("1", "")})
		}
		for _, row := range rows {
			if err := w.Write(row); err != nil {
				t.Fatal(err)
			}
			if r.IntN(5) == 0 {
				w.Flush()
				table.WriteString(pick("\n", "\r\n", "  \n"))
			}
		}
		w.Flush()
		text := table.Bytes()
		if rapid.Bool().Draw(t, "no last line end") {
			text = bytes.TrimRight(text, "\r\n")
		}
		if rapid.Bool().Draw(t, "gzip") {
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			z.Write(text)
			z.Close()
			text = packed.Bytes()
		}
		path := filepath.Join(folder, "a.csv")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		e, err := data.NewEncoding(d)
		if err != nil {
			t.Fatal(err)
		}
		reader := Reading{Source: config.Source{Path: path, Client: "site"}, Encoding: e, Sensitive: d.Sensitive, Keep: []string{"note, free"}}
		got, tally, err := all(&reader)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got.Kept { // the standard library's reader does so
			got.Kept[i][0] = strings.ReplaceAll(got.Kept[i][0], "\r\n", "\n")
		}
		want := naive(t, e, rows[1:])
		if got.Rows != len(rows)-1 || tally.Rows != got.Rows || fmt.Sprint(got.X, got.Y, got.Clients, got.Groups, got.Kept) != fmt.Sprint(want.X, want.Y, want.Clients, want.Groups, want.Kept) {
			t.Fatalf("%q\n got %v\nwant %v", text, got, want)
		}
	})
}

// naive encodes rows of text in the plainest way.
func naive(t *rapid.T, e *data.Encoding, rows [][]string) *Batch {
	b := &Batch{Groups: make([][]int32, 1)}
	for _, row := range rows {
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		x, y, from := make([]float64, len(e.Inputs)), make([]float64, 1), 0
		for i, enc := range e.Encoders() {
			if enc.Text([]byte(row[2+i]), x[from:from+enc.Width()]) == data.CellFault {
				t.Fatalf("%q is a fault", row[2+i])
			}
			from += enc.Width()
		}
		e.TargetEncoder().Text([]byte(row[1]), y)
		b.X, b.Y = append(b.X, x...), append(b.Y, y...)
		b.Clients, b.Kept = append(b.Clients, row[0]), append(b.Kept, []string{row[7]})
		b.Groups[0] = append(b.Groups[0], int32(slices.Index([]string{"f", "m"}, row[6])))
	}
	return b
}

// TestBlocksAreWholeRecords cuts random records into blocks of many sizes: nothing is lost,
// every block begins where a record does, and lines are counted as an editor does.
func TestBlocksAreWholeRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cell := rapid.SampledFrom([]string{"", "1", "-22.5", `"a"`, `"a, b"`, "\"two\nlines\"", `"say ""so"""`, "\"\r\n\""})
		var text strings.Builder
		starts := map[int]int{} // line by place
		line := 1
		for range rapid.IntRange(1, 40).Draw(t, "records") {
			starts[text.Len()] = line
			record := strings.Join(rapid.SliceOfN(cell, 1, 4).Draw(t, "cells"), ",") + rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end")
			line += strings.Count(record, "\n")
			text.WriteString(record)
		}
		c := cutter{in: strings.NewReader(text.String()), line: 1, size: rapid.IntRange(64, 300).Draw(t, "size"), splitter: data.Splitter{Separator: ','}}
		at := 0
		for {
			b, err := c.next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if first, ok := starts[at]; !ok || first != b.line || b.fault != nil || string(b.text) != text.String()[at:at+len(b.text)] {
				t.Fatalf("a block at %d, line %d: %q", at, b.line, b.text)
			}
			at += len(b.text)
		}
		if at != text.Len() {
			t.Fatalf("%d bytes of %d", at, text.Len())
		}
	})
}
