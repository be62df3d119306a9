package data

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"
)

// matPart is one element of a MATLAB file.
func matPart(kind uint32, body []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, kind)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(body)))
	b = append(b, body...)
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	return b
}

func matArray(name string, class byte, rows, cols int, content []byte) []byte {
	dims := binary.LittleEndian.AppendUint32(nil, uint32(rows))
	dims = binary.LittleEndian.AppendUint32(dims, uint32(cols))
	body := matPart(6, []byte{class, 0, 0, 0, 0, 0, 0, 0})
	body = append(body, matPart(5, dims)...)
	if name != "" && len(name) <= 4 { // short names lie within the tag
		small := binary.LittleEndian.AppendUint32(nil, 1|uint32(len(name))<<16)
		small = append(small, name...)
		body = append(body, append(small, make([]byte, 4-len(name))...)...)
	} else {
		body = append(body, matPart(1, []byte(name))...)
	}
	return matPart(matMatrix, append(body, content...))
}

func matDoubles(rows, cols int, values ...float64) []byte {
	var raw []byte
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(v))
	}
	return matArray("", 6, rows, cols, matPart(9, raw))
}

func matCells(name string, cells ...[]byte) []byte {
	return matArray(name, matCell, 1, len(cells), bytes.Join(cells, nil))
}

// matFile puts arrays into a file, each compressed as MATLAB does by default.
func matFile(t testing.TB, arrays ...[]byte) []byte {
	file := append([]byte(strings.Repeat(" ", 124)), 0, 1, 'I', 'M')
	for _, a := range arrays {
		var b bytes.Buffer
		z := zlib.NewWriter(&b)
		if _, err := z.Write(a); err != nil {
			t.Fatal(err)
		}
		z.Close()
		tag := binary.LittleEndian.AppendUint32(nil, matCompressed)
		file = append(binary.LittleEndian.AppendUint32(append(file, tag...), uint32(b.Len())), b.Bytes()...)
	}
	return file
}

// gleamCells are wearers with so many rows each: feature j of row i is i+j/1000.
func gleamCells(labels ...[]float64) (x, y []byte) {
	var xs, ys [][]byte
	for _, l := range labels {
		var values []float64
		for j := range gleamFeatures {
			for i := range l {
				values = append(values, float64(i)+float64(j)/1000)
			}
		}
		xs, ys = append(xs, matDoubles(len(l), gleamFeatures, values...)), append(ys, matDoubles(len(l), 1, l...))
	}
	return matCells("X", xs...), matCells("Y", ys...)
}

func TestGLEAM(t *testing.T) {
	folder := t.TempDir()
	x, y := gleamCells([]float64{1, -1, 1, 1}, []float64{-1, -1})
	put(t, folder, "gleam/gleam.mat", matFile(t, x, y))
	s, err := LoadGLEAM(folder)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.All) != 2 || s.Classes != 2 || s.Report.Rows != 6 || s.All[1].Name != "wearer 1" {
		t.Fatalf("%d silos: %s", len(s.All), &s.Report)
	}
	rows := s.All[0].Rows
	if fmt.Sprint(rows.Y) != "[1 0 1 1]" || rows.X[2*gleamFeatures+179] != 2.179 {
		t.Errorf("labels %v, row 2 ends with %v, want 2.179", rows.Y, rows.X[2*gleamFeatures+179])
	}
}

func TestVehicleTakesTheWholeFileIfThereIsOne(t *testing.T) {
	folder := t.TempDir()
	x, y := matCells("X", matDoubles(2, vehicleFeatures, make([]float64, 200)...)), matCells("Y", matDoubles(2, 1, -1, 1))
	put(t, folder, "vehicle/vehicle.mat", matFile(t, x, y))
	s, err := LoadVehicle(folder)
	if err != nil || s.Report.Kept != 2 || len(s.NotCovered) != 0 {
		t.Errorf("%+v (%v)", s, err)
	}
}

func TestMATFilesThatAreWrong(t *testing.T) {
	good, labels := gleamCells([]float64{1, -1})
	whole := matFile(t, good, labels)
	zero, _ := gleamCells([]float64{})
	_, three := gleamCells([]float64{1, 1, 1})
	_, two := gleamCells([]float64{1}, []float64{1})
	_, odd := gleamCells([]float64{1, 0})
	text := matCells("X", matArray("", 4, 1, 1, matPart(4, []byte{65, 0})))
	for name, c := range map[string]struct {
		raw  []byte
		says string
	}{
		"not MATLAB":         {[]byte("hello"), "level 5"},
		"cut":                {whole[:len(whole)-40], "cut"},
		"a cut tag":          {whole[:len(whole)-len(matFile(t, labels))+matHeader+3], "cut"},
		"flipped bytes":      {append(bytes.Clone(whole[:200]), append([]byte{9, 9, 9}, whole[203:]...)...), "compressed"},
		"no Y":               {matFile(t, good), "0 in Y"},
		"an empty silo":      {matFile(t, zero, matCells("Y", matDoubles(0, 1))), "the silo is empty"},
		"another row count":  {matFile(t, good, three), "wanted: rows by 180"},
		"another silo count": {matFile(t, good, two), "2 in Y"},
		"label 0":            {matFile(t, good, odd), "row 2: label 0"},
		"letters":            {matFile(t, text, labels), "class 4"},
		"other features":     {matFile(t, matCells("X", matDoubles(2, 2, 1, 2, 3, 4)), labels), "X is 2 by 2"},
		"NaN":                {matFile(t, matCells("X", matDoubles(2, 180, slicesOf(360, math.NaN())...)), labels), "not a measurement"},
		"fewer values":       {matFile(t, matCells("X", matDoubles(2, 180, 1)), labels), "1 values for 2 by 180"},
	} {
		folder := t.TempDir()
		put(t, folder, "gleam/gleam.mat", c.raw)
		_, err := LoadGLEAM(folder)
		wantError(t, name, err, "gleam.mat", c.says)
	}
	_, err := LoadGLEAM(t.TempDir())
	wantError(t, "no file", err, "gleam.mat", "docs/data.md")
}

func slicesOf(n int, v float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = v
	}
	return out
}

func FuzzMAT(f *testing.F) {
	x, y := gleamCells([]float64{1})
	f.Add(matFile(f, x, y))
	f.Add(append([]byte(strings.Repeat(" ", 124)+"\x00\x01IM"), x...))
	f.Fuzz(func(_ *testing.T, raw []byte) { _, _ = parseMAT(raw) })
}
