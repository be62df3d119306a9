package data

import "testing"

// The counts are those of the data folder's own notes, counted there with
// another program.
func TestRealHospital(t *testing.T) {
	folder := realData(t)
	zips, err := LoadZIP(folder)
	if err != nil {
		t.Fatal(err)
	}
	if zips.Len() != 42745 {
		t.Errorf("%d ZIP codes, want 42745", zips.Len())
	}
	for _, c := range []struct {
		name        string
		o           HospitalOptions
		least       int // conditions of the clients that are counted
		clients     int
		rows, total int
	}{
		{"2016", HospitalOptions{}, 1, 2801, 10074, 21193},
		{"2016 by code", HospitalOptions{Index: ByCode}, 1, 2801, 10074, 21193},
		{"2016 all four", HospitalOptions{}, 4, 2187, 4 * 2187, 21193},
		{"2016 with MCC", HospitalOptions{DRGs: []int{193, 690, 292, 392}}, 1, 2787, 9930, 21193},
		{"2016 GI with MCC", HospitalOptions{DRGs: []int{194, 690, 292, 391}}, 4, 1231, 4 * 1231, 21193},
		{"2011", HospitalOptions{File: Hospital2011}, 1, 1138, 4308, 4308},
		{"2011 three", HospitalOptions{File: Hospital2011}, 3, 1070, 0, 4308},
		{"2011 four", HospitalOptions{File: Hospital2011}, 4, 996, 4 * 996, 4308},
	} {
		h, err := LoadHospital(folder, c.o)
		if err != nil {
			t.Fatal(c.name, err)
		}
		clients, rows := 0, 0
		for i := range h.Clients {
			if n := h.Clients[i].Len(); n >= c.least {
				clients, rows = clients+1, rows+n
			}
		}
		if clients != c.clients || h.Report.Rows != c.total || c.rows != 0 && rows != c.rows || c.least == 1 && h.Report.Kept != rows {
			t.Errorf("%s: %d clients, want %d; %d rows; %s", c.name, clients, c.clients, rows, &h.Report)
		}
		if n := h.Report.Count(leftMalformed) + h.Report.Count(leftUnknownZIP) + h.Report.Count(leftOtherZIP); n != 0 {
			t.Errorf("%s: %d rows of a clean file were left out: %s", c.name, n, &h.Report)
		}
	}
}

// Papers 000 and 001 split 70 to 30; the study's 2801 clients become 1960 and 841.
func TestRealHospitalSplit(t *testing.T) {
	h, err := LoadHospital(realData(t), HospitalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := h.Split(1, papersTrainShare)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Train) != 1960 || len(f.Validation) != 841 || f.Features != 3 {
		t.Errorf("%d and %d clients of %d features", len(f.Train), len(f.Validation), f.Features)
	}
	sum := make([]float64, 4)
	count := make([]int, 4)
	for _, c := range h.Clients {
		for i, y := range c.Y {
			k := int(4*c.X[3*i]+0.5) - 1
			sum[k] += y * HospitalDollars
			count[k]++
			// The 50 states lie between these meridians and parallels.
			if lon, lat := c.X[3*i+1]*100, c.X[3*i+2]*100; lon < -180 || lon > -65 || lat < 18 || lat > 72 {
				t.Fatalf("a provider at longitude %v, latitude %v", lon, lat)
			}
		}
	}
	// The study's mean payments, in the listing order.
	for k, want := range []float64{7161, 5924, 7174, 5799} {
		if mean := sum[k] / float64(count[k]); mean < want-0.5 || mean > want+0.5 {
			t.Errorf("condition %d costs %.1f dollars on average, the study has %v", h.DRGs[k], mean, want)
		}
	}
}
