package data

import (
	"fmt"
	"strconv"
	"strings"
)

// hospitalLayouts are the four columns that are needed, under the names of each
// release, in lower case: DRG, provider, ZIP code, average total payment.
//
//   - The stored files.
//   - "Inpatient Prospective Payment System (IPPS) Provider Summary for the Top
//     100 Diagnosis-Related Groups (DRG)", fiscal years 2011 to 2017: the DRG's
//     code and title in one cell, amounts with a dollar sign in 2011, names with
//     spaces around them, leading zeros of numbers lost.
//   - "Medicare Inpatient Hospitals - by Provider and Service", the later form of
//     all years (files MUP_IHP_… and MUP_INP_…).
var hospitalLayouts = [][4]string{
	{"drg", "provider_id", "zip", "avg_total_payments"},
	{"drg definition", "provider id", "provider zip code", "average total payments"},
	{"drg_cd", "rndrng_prvdr_ccn", "rndrng_prvdr_zip5", "avg_tot_pymt_amt"},
}

// hospitalLayout is where the needed columns are.
type hospitalLayout struct{ drg, provider, zip, payment int }

// charge is what one row says.
type charge struct {
	drg           int
	provider, zip string
	payment       float64
}

func findHospitalLayout(t *table) (hospitalLayout, error) {
	for _, names := range hospitalLayouts {
		if !t.has(names[:]...) {
			continue
		}
		at, err := t.columns(names[:]...)
		if err != nil {
			return hospitalLayout{}, err
		}
		return hospitalLayout{at[0], at[1], at[2], at[3]}, nil
	}
	var known []string
	for _, names := range hospitalLayouts {
		known = append(known, "("+strings.Join(names[:], ", ")+")")
	}
	return hospitalLayout{}, t.faultf("", "the header fits no known release of the hospital charges; needed: %s; it has %s",
		strings.Join(known, " or "), shorten(strings.Join(t.header, ", ")))
}

// read takes the condition alone: rows of other conditions need no more.
func (l hospitalLayout) read(r row) (charge, error) {
	text := r.cells[l.drg]
	// "194", "039 - EXTRACRANIAL PROCEDURES W/O CC/MCC"
	code, title, titled := strings.Cut(text, " ")
	if len(code) > 3 || !allDigits(code) || titled && !strings.HasPrefix(strings.TrimSpace(title), "-") {
		return charge{}, r.faultf(l.drg, "%s does not begin with a DRG code of 3 digits", shorten(text))
	}
	drg, err := strconv.Atoi(code)
	if err != nil {
		return charge{}, fmt.Errorf("a DRG code of digits: %w", err)
	}
	return charge{drg: drg}, nil
}

// readRest takes the other cells.
func (l hospitalLayout) readRest(r row, c *charge) error {
	id := strings.ToUpper(r.cells[l.provider])
	if len(id) < 1 || len(id) > 6 || strings.Trim(id, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return r.faultf(l.provider, "%s is not a provider number of 6 characters", shorten(r.cells[l.provider]))
	}
	c.provider = strings.Repeat("0", 6-len(id)) + id

	zip, more, long := strings.Cut(r.cells[l.zip], "-")
	if len(zip) < 3 || len(zip) > 5 || !allDigits(zip) || long && (len(more) != 4 || !allDigits(more)) {
		return r.faultf(l.zip, "%s is not a ZIP code", shorten(r.cells[l.zip]))
	}
	c.zip = strings.Repeat("0", 5-len(zip)) + zip

	payment, ok := parseDollars(r.cells[l.payment])
	if !ok {
		return r.faultf(l.payment, "%s is not an amount in dollars", shorten(r.cells[l.payment]))
	}
	if payment <= 0 || payment > maxPayment {
		return r.faultf(l.payment, "%v dollars; allowed: above 0, at most %d", payment, maxPayment)
	}
	c.payment = payment
	return nil
}
