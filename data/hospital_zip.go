package data

import (
	"fmt"
	"io"
	"path/filepath"
)

// Place is a point on the globe in degrees.
type Place struct{ Lat, Lon float64 }

// ZIPTable finds the place of a US ZIP code.
type ZIPTable struct{ places map[string]Place }

// LoadZIP reads zip/us_zip_latlon.csv.gz of the folder of real data.
func LoadZIP(folder string) (*ZIPTable, error) {
	return readFile(filepath.Join(folder, "zip", "us_zip_latlon.csv.gz"), ReadZIP)
}

// ReadZIP reads a table with the columns zip, lat and lon. The name is for
// errors.
func ReadZIP(name string, r io.Reader) (*ZIPTable, error) {
	t, at, err := openTable(name, r, "zip", "lat", "lon")
	if err != nil {
		return nil, err
	}
	z := &ZIPTable{places: map[string]Place{}}
	for row, err := range t.rows() {
		if err != nil {
			return nil, err
		}
		zip := row.cells[at[0]]
		if len(zip) != 5 || !allDigits(zip) {
			return nil, row.faultf(at[0], "%s is not a ZIP code of 5 digits", shorten(zip))
		}
		if _, twice := z.places[zip]; twice {
			return nil, row.faultf(at[0], "ZIP %s is there twice", zip)
		}
		lat, err := row.number(at[1], -90, 90)
		if err != nil {
			return nil, err
		}
		lon, err := row.number(at[2], -180, 180)
		if err != nil {
			return nil, err
		}
		z.places[zip] = Place{lat, lon}
	}
	if len(z.places) == 0 {
		return nil, fmt.Errorf("%s: no ZIP code in it", name)
	}
	return z, nil
}

// Find is the place of a ZIP code of 5 digits.
func (z *ZIPTable) Find(zip string) (Place, bool) {
	p, ok := z.places[zip]
	return p, ok
}
