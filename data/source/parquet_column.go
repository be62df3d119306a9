package source

import (
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
	"github.com/parquet-go/parquet-go/format"
)

// parquetColumn reads a column of a row group from its pages, in which values lie by
// their type, one after the other.
type parquetColumn struct {
	kind    parquet.Kind
	logical format.LogicalTypeValue
	present byte // definition level of a value that is there
	// numeric says that values are numbers as they lie there.
	numeric  bool
	unsigned bool

	pages  parquet.Pages
	page   parquet.Page
	rows   int // left in the page
	levels []byte
	value  int // next one that is there
	// places in the dictionary; nil: values lie in the page itself.
	places []int32
	values encoding.Values
	width  int // bytes of a value of fixed length

	numbered []float64 // the values, or those of the dictionary, as numbers
	numbersN []float64 // what numbers returns
	text     []byte
}

func openColumn(c *parquet.Column, chunk parquet.ColumnChunk) *parquetColumn {
	p := &parquetColumn{kind: c.Type().Kind(), present: byte(c.MaxDefinitionLevel()), pages: chunk.Pages()}
	if t := c.Type().LogicalType(); t != nil {
		p.logical = t.Value
	}
	switch p.kind {
	case parquet.Float, parquet.Double:
		p.numeric = true
	case parquet.Int32, parquet.Int64:
		p.numeric = p.logical == nil
		if t, ok := p.logical.(*format.IntType); ok {
			p.numeric, p.unsigned = true, !t.IsSigned
		}
	}
	return p
}

func (c *parquetColumn) close() {
	c.release()
	c.pages.Close()
}

func (c *parquetColumn) release() {
	if c.page != nil {
		parquet.Release(c.page)
		c.page = nil
	}
}

// turn reads the next page that has rows.
func (c *parquetColumn) turn(asNumbers bool) error {
	for c.rows == 0 {
		c.release()
		page, err := c.pages.ReadPage()
		if err == io.EOF {
			return fmt.Errorf("the column ends early: the file is damaged")
		}
		if err != nil {
			return err
		}
		c.page, c.rows, c.value = page, int(page.NumRows()), 0
		if c.levels = nil; c.present > 0 && page.NumNulls() > 0 { // or else they say nothing
			c.levels = page.DefinitionLevels()
		}
		there := c.rows - int(page.NumNulls())
		c.values, c.places = page.Data(), nil
		if d := page.Dictionary(); d != nil {
			c.places = c.values.Int32()
			c.values = d.Page().Data()
			there = d.Len()
		}
		if there > 0 && c.kind == parquet.FixedLenByteArray {
			raw, _ := c.values.Data()
			c.width = len(raw) / there
		}
		if asNumbers && there > 0 {
			c.toNumbers()
		}
	}
	return nil
}

// toNumbers makes floats of a page's or a dictionary's values.
func (c *parquetColumn) toNumbers() {
	switch {
	case c.kind == parquet.Double:
		c.numbered = c.values.Double()
		return
	case c.kind == parquet.Float:
		c.numbered = floats(c.numbered, c.values.Float())
	case c.kind == parquet.Int32 && c.unsigned:
		c.numbered = floats(c.numbered, c.values.Uint32())
	case c.kind == parquet.Int32:
		c.numbered = floats(c.numbered, c.values.Int32())
	case c.unsigned:
		c.numbered = floats(c.numbered, c.values.Uint64())
	default:
		c.numbered = floats(c.numbered, c.values.Int64())
	}
}

func floats[T int32 | int64 | uint32 | uint64 | float32](into []float64, values []T) []float64 {
	into = slices.Grow(into[:0], len(values))[:len(values)]
	for i, v := range values {
		into[i] = float64(v)
	}
	return into
}

// next is where the next row's value lies; -1: it is missing.
func (c *parquetColumn) next(row int) int {
	if c.levels != nil && c.levels[row] != c.present {
		return -1
	}
	at := c.value
	c.value++
	if c.places != nil {
		at = int(c.places[at])
	}
	return at
}

// numbers are those of the next n rows, NaN where there is none.
func (c *parquetColumn) numbers(n int) ([]float64, error) {
	out := slices.Grow(c.numbersN[:0], n)[:n]
	c.numbersN = out
	for done := 0; done < n; {
		if err := c.turn(true); err != nil {
			return nil, err
		}
		m := min(n-done, c.rows)
		row := int(c.page.NumRows()) - c.rows
		if c.levels == nil && c.places == nil {
			copy(out[done:done+m], c.numbered[c.value:c.value+m])
			c.value += m
		} else {
			for i := range m {
				v := math.NaN()
				if at := c.next(row + i); at >= 0 {
					v = c.numbered[at]
				}
				out[done+i] = v
			}
		}
		c.rows -= m
		done += m
	}
	return out, nil
}

// texts gives the next n rows as text, empty where there is none. It is good until visit
// returns.
func (c *parquetColumn) texts(n int, visit func(i int, cell []byte)) error {
	for done := 0; done < n; {
		if err := c.turn(false); err != nil {
			return err
		}
		m := min(n-done, c.rows)
		row := int(c.page.NumRows()) - c.rows
		for i := range m {
			var cell []byte
			if at := c.next(row + i); at >= 0 {
				cell = c.format(at)
			}
			visit(done+i, cell)
		}
		c.rows -= m
		done += m
	}
	return nil
}

// format writes a value as text.
func (c *parquetColumn) format(at int) []byte {
	text := c.text[:0]
	switch c.kind {
	case parquet.ByteArray:
		raw, offsets := c.values.ByteArray()
		cell := raw[offsets[at]:offsets[at+1]]
		if t, ok := c.logical.(*format.DecimalType); ok {
			return decimal(bigEndian(cell), t.Scale)
		}
		return cell
	case parquet.FixedLenByteArray:
		raw, _ := c.values.Data()
		cell := raw[at*c.width : (at+1)*c.width]
		switch t := c.logical.(type) {
		case *format.DecimalType:
			return decimal(bigEndian(cell), t.Scale)
		case *format.UUIDType:
			h := hex.EncodeToString(cell)
			return fmt.Appendf(nil, "%s-%s-%s-%s-%s", h[:8], h[8:12], h[12:16], h[16:20], h[20:])
		}
		return cell
	case parquet.Boolean:
		bits := c.values.Boolean()
		text = strconv.AppendBool(text, bits[at/8]>>(at%8)&1 != 0)
	case parquet.Float:
		text = appendFloat(text, float64(c.values.Float()[at]), 32)
	case parquet.Double:
		text = appendFloat(text, c.values.Double()[at], 64)
	case parquet.Int32:
		text = c.integer(text, int64(c.values.Int32()[at]), uint64(c.values.Uint32()[at]))
	case parquet.Int64:
		text = c.integer(text, c.values.Int64()[at], c.values.Uint64()[at])
	}
	c.text = text
	return text
}

// integer writes a whole number, a date or a time, as the column's type says.
func (c *parquetColumn) integer(text []byte, v int64, unsigned uint64) []byte {
	switch t := c.logical.(type) {
	case *format.DecimalType:
		return decimal(big.NewInt(v), t.Scale)
	case *format.DateType:
		return time.Unix(0, 0).UTC().AddDate(0, 0, int(v)).AppendFormat(text, time.DateOnly)
	case *format.TimestampType:
		unit := int64(time.Second / t.Unit.Value.Duration())
		seconds := v / unit
		if v%unit < 0 {
			seconds--
		}
		return time.Unix(seconds, (v-seconds*unit)*(int64(time.Second)/unit)).UTC().AppendFormat(text, "2006-01-02 15:04:05.999999999")
	}
	if c.unsigned {
		return strconv.AppendUint(text, unsigned, 10)
	}
	return strconv.AppendInt(text, v, 10)
}

// appendFloat writes a number as people do, unless that is long.
func appendFloat(text []byte, v float64, bits int) []byte {
	if math.Abs(v) < 1e15 && (math.Abs(v) > 1e-5 || v == 0) {
		return strconv.AppendFloat(text, v, 'f', -1, bits)
	}
	return strconv.AppendFloat(text, v, 'g', -1, bits)
}

// bigEndian is a number in two's complement.
func bigEndian(raw []byte) *big.Int {
	v := new(big.Int).SetBytes(raw)
	if len(raw) > 0 && raw[0] >= 0x80 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(raw))))
	}
	return v
}

// decimal is a whole number of units of 10^-scale.
func decimal(v *big.Int, scale int32) []byte {
	if scale < 0 || scale > 100 {
		return fmt.Appendf(nil, "%se%d", v, -scale)
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
	return []byte(new(big.Rat).SetFrac(v, unit).FloatString(int(scale)))
}
