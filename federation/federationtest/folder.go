package federationtest

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/rng"
)

// Folder is one of made-up data, under the names of real ones: three schools of 60 pupils,
// three of Vehicle's sensors, and few pictures in MNIST's place.
func Folder(t *testing.T) *data.Folder {
	t.Helper()
	dir := t.TempDir()
	schools := rng.NewFamily(8, "made-up schools")
	write(t, filepath.Join(dir, "school", "school.csv.gz"), table("school", 28, "score", &schools, func(s *rng.Stream) int { return 1 + s.Below(70) }))
	sensors := rng.NewFamily(8, "made-up sensors")
	write(t, filepath.Join(dir, "vehicle", "vehicle_ditto_train.csv.gz"), table("sensor", 100, "label", &sensors, func(s *rng.Stream) int { return 2*s.Below(2) - 1 }))
	digits := rng.NewFamily(8, "made-up digits")
	for part, name := range []string{"train", "t10k"} {
		s := digits.Stream(0, part)
		write(t, filepath.Join(dir, "mnist", name+"-images-idx3-ubyte.gz"), idx(s, 256, 80, 28, 28))
		write(t, filepath.Join(dir, "mnist", name+"-labels-idx1-ubyte.gz"), idx(s, 10, 80))
	}
	return data.NewFolder(dir)
}

// table has three silos of 60 rows: features of 0 and 1, and a target.
func table(silo string, features int, target string, family *rng.Family, draw func(*rng.Stream) int) []byte {
	var text bytes.Buffer
	text.WriteString(silo)
	for j := range features {
		fmt.Fprintf(&text, ",f%02d", j)
	}
	fmt.Fprintf(&text, ",%s\n", target)
	for i := range 3 {
		s := family.Stream(0, i)
		for range 60 {
			fmt.Fprint(&text, i)
			for range features {
				fmt.Fprintf(&text, ",%d", s.Below(2))
			}
			fmt.Fprintf(&text, ",%d\n", draw(s))
		}
	}
	return text.Bytes()
}

// idx is a file in MNIST's format, of bytes below a bound.
func idx(s *rng.Stream, below int, shape ...int) []byte {
	raw, n := []byte{0, 0, 8, byte(len(shape))}, 1
	for _, side := range shape {
		raw = binary.BigEndian.AppendUint32(raw, uint32(side))
		n *= side
	}
	for range n {
		raw = append(raw, byte(s.Below(below)))
	}
	return raw
}

func write(t *testing.T, path string, raw []byte) {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(raw); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}
