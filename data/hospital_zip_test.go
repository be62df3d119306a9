package data

import (
	"strings"
	"testing"
)

func TestReadZIP(t *testing.T) {
	z, err := ReadZIP("z.csv", strings.NewReader("zip,lat,lon,source\n00501,40.8154,-73.0451,x\n99950,55.5,-131,x\n"))
	if err != nil || z.Len() != 2 {
		t.Fatal(z, err)
	}
	if p, ok := z.Find("00501"); !ok || p != (Place{40.8154, -73.0451}) {
		t.Error(p, ok)
	}
	if _, ok := z.Find("501"); ok {
		t.Error("a ZIP code without its zeros was found")
	}
	for _, c := range []struct{ name, body, where, what string }{
		{"no coordinates", "zip,lat\n00501,40\n", "line 1", "lacks lon"},
		{"nothing", "zip,lat,lon\n", "z.csv", "no ZIP"},
		{"four digits", "zip,lat,lon\n0501,40,-73\n", "line 2, column zip", "5 digits"},
		{"letters", "zip,lat,lon\n0050A,40,-73\n", "line 2, column zip", "5 digits"},
		{"twice", "zip,lat,lon\n00501,40,-73\n00501,40,-73\n", "line 3, column zip", "twice"},
		{"NaN", "zip,lat,lon\n00501,NaN,-73\n", "line 2, column lat", "not a number"},
		{"beyond the pole", "zip,lat,lon\n00501,91,-73\n", "line 2, column lat", "-90 to 90"},
		{"beyond the globe", "zip,lat,lon\n00501,40,-181\n", "line 2, column lon", "-180 to 180"},
		{"a short row", "zip,lat,lon\n00501,40\n", "line 2", "2 cells"},
	} {
		_, err := ReadZIP("z.csv", strings.NewReader(c.body))
		wantError(t, c.name, err, c.where, c.what)
	}
	_, err = LoadZIP(t.TempDir())
	wantError(t, "a missing table", err, "us_zip_latlon.csv.gz", "docs/data.md")
}

func FuzzReadZIP(f *testing.F) {
	f.Add("zip,lat,lon\n00501,40.8,-73\n")
	f.Fuzz(func(t *testing.T, body string) {
		z, err := ReadZIP("z.csv", strings.NewReader(body))
		if err != nil {
			return
		}
		for zip, p := range z.places {
			if len(zip) != 5 || !(p.Lat >= -90 && p.Lat <= 90 && p.Lon >= -180 && p.Lon <= 180) {
				t.Fatalf("%q at %v", zip, p)
			}
		}
	})
}

// Len is the number of ZIP codes.
func (z *ZIPTable) Len() int { return len(z.places) }
