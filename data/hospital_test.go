package data

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// papersTrainShare is the papers' share of clients that train.
const papersTrainShare = 0.7

func madeUpZIPs(t testing.TB) *ZIPTable {
	t.Helper()
	z, err := ReadZIP("z.csv", strings.NewReader("zip,lat,lon\n01040,42.25,-72.5\n36301,31.25,-85.5\n94545,37.5,-122\n"))
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// The same three hospitals in the layouts of the releases.
var madeUpCharges = map[string]string{
	"stored": "drg,provider_id,state,zip,total_discharges,avg_covered_charges,avg_total_payments,avg_medicare_payments\n" +
		"194,010001,AL,36301,36,24253.56,5036.06,4114.39\n" +
		"292,010001,AL,36301,36,24253.56,7000,4114.39\n" +
		"690,050002,CA,94545,36,24253.56,12345.67,4114.39\n" +
		"292,220001,MA,01040,36,24253.56,8000,4114.39\n" +
		"470,220001,MA,01040,36,24253.56,9000,4114.39\n",
	// Fiscal year 2011: spaces in the header, dollar signs, zeros lost.
	"2011": "DRG Definition,Provider Id,Provider Name,Provider Street Address,Provider City,Provider State,Provider Zip Code,Hospital Referral Region Description, Total Discharges , Average Covered Charges , Average Total Payments ,Average Medicare Payments\n" +
		"470 - MAJOR JOINT REPLACEMENT,220001,GENERAL,1 MAIN ST,HOLYOKE,MA,1040,MA - Springfield,36,$24253.56,$9000.00,$4114.39\n" +
		"292 - HEART FAILURE & SHOCK W CC,220001,GENERAL,1 MAIN ST,HOLYOKE,MA,1040,MA - Springfield,36,$24253.56,$8000.00,$4114.39\n" +
		"194 - SIMPLE PNEUMONIA & PLEURISY W CC,10001,\"MEDICAL CENTER, SOUTH\",1 MAIN ST,DOTHAN,AL,36301,AL - Dothan,36,$24253.56,$5036.06,$4114.39\n" +
		"292 - HEART FAILURE & SHOCK W CC,10001,\"MEDICAL CENTER, SOUTH\",1 MAIN ST,DOTHAN,AL,36301,AL - Dothan,36,$24253.56,\"$7,000.00\",$4114.39\n" +
		"690 - KIDNEY & URINARY TRACT INFECTIONS W/O MCC,50002,WEST,1 MAIN ST,HAYWARD,CA,94545,CA - Alameda,36,$24253.56,\"$12,345.67\",$4114.39\n",
	"later": "\ufeffRndrng_Prvdr_CCN,Rndrng_Prvdr_Org_Name,Rndrng_Prvdr_City,Rndrng_Prvdr_St,Rndrng_Prvdr_State_FIPS,Rndrng_Prvdr_Zip5,Rndrng_Prvdr_State_Abrvtn,Rndrng_Prvdr_RUCA,Rndrng_Prvdr_RUCA_Desc,DRG_Cd,DRG_Desc,Tot_Dschrgs,Avg_Submtd_Cvrd_Chrg,Avg_Tot_Pymt_Amt,Avg_Mdcr_Pymt_Amt\r\n" +
		"010001,South \xe9,Dothan,1 Main St,01,36301,AL,1,\"Metropolitan area core: primary flow, in\",292,HEART FAILURE,36,24253.56,7000,4114.39\r\n" +
		"010001,South \xe9,Dothan,1 Main St,01,36301-1234,AL,1,\"Metropolitan area core: primary flow, in\",194,SIMPLE PNEUMONIA,36,24253.56,5036.06,4114.39\r\n" +
		"220001,General,Holyoke,1 Main St,25,01040,MA,1,x,292,HEART FAILURE,36,24253.56,8000,4114.39\r\n" +
		"220001,General,Holyoke,1 Main St,25,01040,MA,1,x,470,JOINT,36,24253.56,9000,4114.39\r\n" +
		"050002,West,Hayward,1 Main St,06,94545,CA,1,x,690,KIDNEY,36,24253.56,12345.67,4114.39\r\n",
}

func TestHospitalLayoutsAgree(t *testing.T) {
	for name, body := range madeUpCharges {
		h, err := ReadHospital(name, strings.NewReader(body), madeUpZIPs(t), HospitalOptions{})
		if err != nil {
			t.Fatal(name, err)
		}
		if !slices.Equal(h.Providers, []string{"010001", "050002", "220001"}) {
			t.Fatalf("%s: providers %v", name, h.Providers)
		}
		// Appendix B.2 and the study: index/4 in the order 194, 690, 292, 392;
		// longitude and latitude over 100; dollars over 10,000.
		want := []Client{
			{Rows: Rows{X: []float64{0.25, -0.855, 0.3125, 0.75, -0.855, 0.3125}, Y: []float64{0.503606, 0.7}, Features: 3}},
			{Rows: Rows{X: []float64{0.5, -1.22, 0.375}, Y: []float64{1.234567}, Features: 3}},
			{Rows: Rows{X: []float64{0.75, -0.725, 0.4225}, Y: []float64{0.8}, Features: 3}},
		}
		for i, c := range h.Clients {
			if !slices.Equal(c.X, want[i].X) || !slices.Equal(c.Y, want[i].Y) || c.Features != 3 || c.Len() != len(want[i].Y) {
				t.Errorf("%s: client %d is %+v, want %+v", name, i, c.Rows, want[i].Rows)
			}
		}
		if h.Report.Rows != 5 || h.Report.Kept != 4 || h.Report.Count(leftOtherDRG) != 1 {
			t.Errorf("%s: %s", name, &h.Report)
		}
	}
}

func TestHospitalIndex(t *testing.T) {
	read := func(o HospitalOptions) *Hospital {
		h, err := ReadHospital("h.csv", strings.NewReader(madeUpCharges["stored"]), madeUpZIPs(t), o)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	// By code: 194, 292, 392, 690.
	h := read(HospitalOptions{Index: ByCode})
	if x := h.Clients[0].X; x[0] != 0.25 || x[3] != 0.5 {
		t.Errorf("indices %v and %v", x[0], x[3])
	}
	if x := h.Clients[1].X; x[0] != 1 {
		t.Errorf("DRG 690 has index %v", x[0])
	}
	h = read(HospitalOptions{DRGs: []int{470, 292}})
	if x := h.Clients[1].X; len(h.Clients) != 2 || x[0] != 0.5 || x[3] != 1 {
		t.Errorf("clients %v", h.Clients)
	}
	for name, o := range map[string]HospitalOptions{
		"DRG 0": {DRGs: []int{0}}, "DRG 1000": {DRGs: []int{1000}}, "a DRG twice": {DRGs: []int{194, 194}},
		"no index": {Index: 7},
	} {
		if _, err := ReadHospital("h.csv", strings.NewReader(madeUpCharges["stored"]), madeUpZIPs(t), o); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestHospitalCountsWhatItLeavesOut(t *testing.T) {
	head := "drg,provider_id,zip,avg_total_payments\n"
	good := "194,010001,36301,5000\n"
	for _, c := range []struct{ name, row, reason, place string }{
		{"short row", "194,010002,36301\n", leftMalformed, "h.csv, line 3: 3 cells"},
		{"too many commas", "194,010002,36301,5,000\n", leftMalformed, "line 3: 5 cells"},
		{"no DRG", "PNEUMONIA,010002,36301,5000\n", leftMalformed, "line 3, column drg"},
		{"a DRG of 4 digits", "1940,010002,36301,5000\n", leftMalformed, "line 3, column drg"},
		{"no provider", "194,,36301,5000\n", leftMalformed, "line 3, column provider_id"},
		{"a long provider", "194,0100021,36301,5000\n", leftMalformed, "line 3, column provider_id"},
		{"no ZIP", "194,010002,,5000\n", leftMalformed, "line 3, column zip"},
		{"a foreign ZIP", "194,010002,K1A0B1,5000\n", leftMalformed, "line 3, column zip"},
		{"unknown ZIP", "194,010002,99999,5000\n", leftUnknownZIP, "line 3: provider 010002, ZIP 99999"},
		{"another ZIP", "292,010001,94545,5000\n", leftOtherZIP, "line 3: provider 010001, ZIP 94545 after 36301"},
		{"no payment", "194,010002,36301,\n", leftMalformed, "line 3, column avg_total_payments"},
		{"NaN", "194,010002,36301,NaN\n", leftMalformed, "line 3, column avg_total_payments"},
		{"nothing paid", "194,010002,36301,0\n", leftMalformed, "allowed: above 0"},
		{"a negative payment", "194,010002,36301,-5\n", leftMalformed, "allowed: above 0"},
		{"a fortune", "194,010002,36301,1e8\n", leftMalformed, "at most"},
	} {
		h, err := ReadHospital("h.csv", strings.NewReader(head+good+c.row), madeUpZIPs(t), HospitalOptions{})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if len(h.Clients) != 1 || h.Report.Rows != 2 || h.Report.Kept != 1 || h.Report.Count(c.reason) != 1 {
			t.Errorf("%s: %d clients, %s", c.name, len(h.Clients), &h.Report)
		} else if !strings.Contains(h.Report.LeftOut[0].Places[0], c.place) {
			t.Errorf("%s: listed as %q", c.name, h.Report.LeftOut[0].Places)
		}
	}
	// Many: all are counted, the first ten listed.
	h, err := ReadHospital("h.csv", strings.NewReader(head+good+strings.Repeat("194,x!,36301,1\n", 25)), madeUpZIPs(t), HospitalOptions{})
	if err != nil || h.Report.Count(leftMalformed) != 25 || len(h.Report.LeftOut[0].Places) != maxPlaces {
		t.Fatal(err)
	}
	if s := h.Report.String(); !strings.Contains(s, "left out: 25 (malformed row)") || !strings.Contains(s, "and 15 more") {
		t.Error(s)
	}
}

func TestHospitalRefuses(t *testing.T) {
	for _, c := range []struct{ name, body, what string }{
		{"another table", "a,b\n1,2\n", "known release"},
		{"half a header", "drg,provider_id,zip\n194,010001,36301\n", "avg_total_payments"},
		{"two years in one", "drg,provider_id,zip,avg_total_payments\n194,010001,36301,1\n194,010001,36301,2\n", "line 3: provider 010001 and DRG 194 were on line 2"},
		{"nothing usable", "drg,provider_id,zip,avg_total_payments\n194,010001,99999,1\n", "no provider is left"},
		{"an empty file", "", "empty"},
	} {
		_, err := ReadHospital("h.csv", strings.NewReader(c.body), madeUpZIPs(t), HospitalOptions{})
		wantError(t, c.name, err, "h.csv", c.what)
	}
	folder := t.TempDir()
	_, err := LoadHospital(folder, HospitalOptions{})
	wantError(t, "no data", err, "zip")
	put(t, folder, "zip/us_zip_latlon.csv.gz", gz(t, []byte("zip,lat,lon\n36301,31.25,-85.5\n")))
	_, err = LoadHospital(folder, HospitalOptions{File: Hospital2011})
	wantError(t, "no charges", err, filepath.Join("hospital", Hospital2011), "docs/data.md")
	if !errors.Is(err, os.ErrNotExist) {
		t.Error("the cause is lost")
	}
	body := []byte("drg,provider_id,zip,avg_total_payments\n194,010001,36301,1\n")
	packed := gz(t, body)
	put(t, folder, "hospital/"+Hospital2016, packed)
	if _, err := LoadHospital(folder, HospitalOptions{}); err != nil {
		t.Error(err)
	}
	own := put(t, t.TempDir(), "cms.csv", body)
	if _, err := LoadHospital(folder, HospitalOptions{File: own}); err != nil {
		t.Error(err)
	}
	put(t, folder, "hospital/"+Hospital2016, packed[:len(packed)-4])
	_, err = LoadHospital(folder, HospitalOptions{})
	wantError(t, "a cut archive", err, "EOF")
}

func TestHospitalSplit(t *testing.T) {
	var body strings.Builder
	body.WriteString("drg,provider_id,zip,avg_total_payments\n")
	for i := range 2947 { // as many clients as the papers have
		fmt.Fprintf(&body, "194,%06d,36301,%d\n", i, i+1)
	}
	h, err := ReadHospital("h.csv", strings.NewReader(body.String()), madeUpZIPs(t), HospitalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := h.Split(1, papersTrainShare)
	if err != nil {
		t.Fatal(err)
	}
	// Figure 3 of paper 000: 2062 clients train.
	if len(f.Train) != 2062 || len(f.Validation) != 885 {
		t.Errorf("%d and %d clients", len(f.Train), len(f.Validation))
	}
	seen := map[float64]int{}
	for _, c := range slices.Concat(f.Train, f.Validation) {
		seen[c.Y[0]]++
	}
	if len(seen) != 2947 {
		t.Errorf("%d of 2947 clients are in the split", len(seen))
	}
	again, err := h.Split(1, papersTrainShare)
	if err != nil || !reflect.DeepEqual(f, again) {
		t.Error("the same seed gave another split")
	}
	other, err := h.Split(2, papersTrainShare)
	if err != nil || reflect.DeepEqual(f.Train, other.Train) {
		t.Error("another seed gave the same split")
	}
	for _, share := range []float64{0, -1, 1.1, math.NaN(), 1e-9} {
		if _, err := h.Split(1, share); err == nil {
			t.Errorf("share %v was accepted", share)
		}
	}
}

func FuzzReadHospital(f *testing.F) {
	for _, body := range madeUpCharges {
		f.Add(body)
	}
	f.Add("drg,provider_id,zip,avg_total_payments\n194,1,36301,\"$1,000\"\n")
	f.Fuzz(func(t *testing.T, body string) {
		h, err := ReadHospital("h.csv", strings.NewReader(body), madeUpZIPs(t), HospitalOptions{})
		if err != nil {
			return
		}
		rows, out := 0, 0
		for _, c := range h.Clients {
			rows += c.Len()
			if len(c.X) != 3*len(c.Y) || c.Len() < 1 || c.Len() > 4 {
				t.Fatalf("a client of %d values and %d targets", len(c.X), len(c.Y))
			}
			for _, y := range c.Y {
				if !(y > 0 && y <= maxPayment/HospitalDollars) {
					t.Fatalf("a target of %v", y)
				}
			}
		}
		for _, o := range h.Report.LeftOut {
			out += o.Count
		}
		if rows != h.Report.Kept || rows+out != h.Report.Rows {
			t.Fatalf("%d rows kept and %d left out of %d", rows, out, h.Report.Rows)
		}
	})
}
