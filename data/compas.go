package data

import "path/filepath"

func init() {
	Register(tableKind("compas", "COMPAS, offences within two years",
		"compas-scores-two-years.csv of ProPublica's compas-analysis, some of its columns: compas/compas_two_years.csv.gz", compasSchema, false,
		func(folder, _ string, o TabularOptions) (*Tabular, error) { return LoadCOMPAS(folder, o) }))
}

// Why ProPublica's filter leaves rows out.
const (
	leftNoArrest    = "no days between screening and arrest"
	leftFarArrest   = "more than 30 days between screening and arrest"
	leftNoRecord    = "no record of recidivism"
	leftTraffic     = "ordinary traffic offence"
	leftNoScoreText = "no score"
)

// compasSchema follows ProPublica's table of Broward County, 2013 and 2014. What
// COMPAS itself says (its scores) is no feature. Scales are round figures; counts
// are bounded by what is plausible only.
var compasSchema = schema{
	label:   "two_year_recid",
	classes: []string{"0", "1"},
	id:      "id",
	features: []feature{
		{column: "sex", sensitive: true, values: []string{"Female", "Male"}},
		{column: "race", sensitive: true, values: []string{
			"African-American", "Asian", "Caucasian", "Hispanic", "Native American", "Other"}},
		{column: "age", low: 0, high: 120, scale: 100},
		{column: "juv_fel_count", low: 0, high: 1000, scale: 10},
		{column: "juv_misd_count", low: 0, high: 1000, scale: 10},
		{column: "juv_other_count", low: 0, high: 1000, scale: 10},
		{column: "priors_count", low: 0, high: 1000, scale: 10},
		{column: "c_charge_degree", values: []string{"F", "M"}},
	},
	filter: []string{"days_b_screening_arrest", "is_recid", "c_charge_degree", "score_text"},
	keep:   keepCOMPAS,
}

// keepCOMPAS is the filter of ProPublica's analysis (Larson, Mattu, Kirchner and
// Angwin 2016, "How we analyzed the COMPAS recidivism algorithm"). It takes the
// columns of compasSchema.filter.
func keepCOMPAS(r row, at []int) (string, error) {
	if r.cells[at[0]] == "" {
		return leftNoArrest, nil
	}
	days, err := r.number(at[0], -100_000, 100_000)
	if err != nil {
		return "", err
	}
	recid, err := r.integer(at[1], -1, 1)
	if err != nil {
		return "", err
	}
	switch {
	case days < -30 || days > 30:
		return leftFarArrest, nil
	case recid == -1:
		return leftNoRecord, nil
	case r.cells[at[2]] == "O":
		return leftTraffic, nil
	case r.cells[at[3]] == "N/A":
		return leftNoScoreText, nil
	}
	return "", nil
}

// LoadCOMPAS reads ProPublica's two-year recidivism table from the folder of real
// data and applies their filter. The label is 1 for a new offence within two
// years; sex and race are sensitive.
func LoadCOMPAS(folder string, o TabularOptions) (*Tabular, error) {
	path := filepath.Join(folder, "compas", "compas_two_years.csv.gz")
	return readFile(path, compasSchema.reader(o))
}
