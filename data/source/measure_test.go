package source

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/coterie-fl/coterie/config"
)

// wide is the block of a table of numbers f00, f01, …, a yes/no target and 12 clients.
func wide(path string, columns int) config.Data {
	d := config.Data{Kind: "table", Target: "y", Task: "yes/no", TestShare: 0.2, Standardise: "none", Source: config.Source{Path: path, Client: "client"}}
	for j := range columns {
		d.Features = append(d.Features, config.Column{Name: fmt.Sprintf("f%02d", j), Type: "number", Range: []float64{-900, 900}})
	}
	return d
}

// wideRow draws the values of a row: numbers of six or seven digits.
func wideRow(r *rand.Rand, x []float64) (client string, y string) {
	for j := range x {
		x[j] = float64(r.IntN(2_000_000)-1_000_000) / 1000
	}
	return "site" + strconv.Itoa(r.IntN(12)), strconv.Itoa(r.IntN(2))
}

// writeWideParquet writes the same numbers, in row groups of the size that Arrow writes.
func writeWideParquet(t testing.TB, path string, rows, columns, group int) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	schema := parquet.Group{"client": parquet.Encoded(parquet.String(), &parquet.RLEDictionary), "y": parquet.Optional(parquet.Int(32))}
	for _, f := range wide("", columns).Features {
		schema[f.Name] = parquet.Compressed(parquet.Optional(parquet.Leaf(parquet.DoubleType)), &parquet.Snappy)
	}
	w := parquet.NewWriter(file, parquet.NewSchema("wide", schema), parquet.MaxRowsPerRowGroup(int64(group)))
	r, x, row := rand.New(rand.NewPCG(1, 2)), make([]float64, columns), make(parquet.Row, columns+2)
	for range rows {
		client, y := wideRow(r, x)
		row[0] = parquet.ByteArrayValue([]byte(client)).Level(0, 0, 0)
		for j, v := range x {
			row[1+j] = parquet.DoubleValue(v).Level(0, 1, 1+j)
		}
		row[columns+1] = parquet.Int32Value(int32(y[0]-'0')).Level(0, 1, columns+1)
		if _, err := w.WriteRows([]parquet.Row{row}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

func writeWide(t testing.TB, path string, rows, columns int) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriterSize(file, 1<<20)
	w.WriteString("client,y")
	for _, f := range wide("", columns).Features {
		w.WriteString("," + f.Name)
	}
	w.WriteByte('\n')
	r, x, line := rand.New(rand.NewPCG(1, 2)), make([]float64, columns), []byte{}
	for range rows {
		client, y := wideRow(r, x)
		line = append(append(append(line[:0], client...), ','), y...)
		for _, v := range x {
			line = strconv.AppendFloat(append(line, ','), v, 'f', -1, 64)
		}
		w.Write(append(line, '\n'))
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestMeasureReading reads a million rows of 50 columns and prints times, processor
// seconds and peak memory. Set COTERIE_MEASURE to csv or parquet; one at a time, for the
// peak is the process's.
func TestMeasureReading(t *testing.T) {
	format := os.Getenv("COTERIE_MEASURE")
	if format == "" {
		t.Skip("skipped: a measurement; set COTERIE_MEASURE to csv or parquet")
	}
	const rows, columns = 1_000_000, 50
	path := filepath.Join(os.TempDir(), "coterie-wide."+format)
	if _, err := os.Stat(path); err != nil {
		if format == formatParquet {
			writeWideParquet(t, path, rows, columns, 1<<20)
		} else {
			writeWide(t, path, rows, columns)
		}
	}
	var walls, cpus []float64
	peak := ""
	for range 7 {
		runtime.GC()
		wall, cpu := time.Now(), processorSeconds(t)
		f, err := LoadTable(wide(path, columns), 1, "")
		if err != nil {
			t.Fatal(err)
		}
		walls, cpus = append(walls, time.Since(wall).Seconds()), append(cpus, processorSeconds(t)-cpu)
		if peak == "" { // later ones find what the first one left
			peak = peakMemory(t)
		}
		read := 0
		for i := range f.Train {
			read += f.Train[i].Len() + f.Train[i].Held.Len()
		}
		if read != rows {
			t.Fatalf("%d rows", read)
		}
	}
	t.Logf("%s: seconds %.2f, of processors %.2f, peak of the process %s", format, walls, cpus, peak)
	slices.Sort(walls)
	slices.Sort(cpus)
	t.Logf("medians: %.2f s, %.2f s of processors", walls[3], cpus[3])
}

func processorSeconds(t *testing.T) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

func peakMemory(t *testing.T) string {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			return strings.TrimSpace(rest)
		}
	}
	return "unknown"
}
