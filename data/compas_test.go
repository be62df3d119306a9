package data

import (
	"strings"
	"testing"
)

const compasHead = "id,sex,age,age_cat,race,juv_fel_count,juv_misd_count,juv_other_count,priors_count,days_b_screening_arrest,c_charge_degree,c_charge_desc,is_recid,decile_score,score_text,v_decile_score,v_score_text,two_year_recid\n"

func readCOMPAS(body string) (*Tabular, error) {
	return readTabular("compas.csv", strings.NewReader(body), compasSchema, TabularOptions{})
}

func TestReadCOMPAS(t *testing.T) {
	d, err := readCOMPAS(compasHead +
		"1,Male,34,25 - 45,African-American,0,0,1,4,-1,F,\"Possession, Cocaine\",1,4,Low,3,Low,1\n" +
		"2,Female,50,Greater than 45,Other,0,0,0,0,,M,x,0,1,Low,1,Low,0\n" +
		"3,Female,50,Greater than 45,Other,0,0,0,0,31,M,x,0,1,Low,1,Low,0\n" +
		"4,Female,50,Greater than 45,Other,0,0,0,0,-31,M,x,0,1,Low,1,Low,0\n" +
		"5,Female,50,Greater than 45,Other,0,0,0,0,0,M,x,-1,1,Low,1,Low,0\n" +
		"6,Female,50,Greater than 45,Other,0,0,0,0,0,O,x,0,1,Low,1,Low,0\n" +
		"7,Female,50,Greater than 45,Other,0,0,0,0,0,M,x,0,-1,N/A,1,Low,0\n" +
		"8,Female,50,Greater than 45,Caucasian,0,0,0,0,30,M,x,0,1,Low,1,Low,0\n")
	if err != nil {
		t.Fatal(err)
	}
	for reason, want := range map[string]int{leftNoArrest: 1, leftFarArrest: 2, leftNoRecord: 1, leftTraffic: 1, leftNoScoreText: 1} {
		if got := d.Report.Count(reason); got != want {
			t.Errorf("%d left out for %q, want %d", got, reason, want)
		}
	}
	if d.Len() != 2 || d.Features != 7 || d.Y[0] != 1 || d.Y[1] != 0 {
		t.Fatalf("%d rows of %d features", d.Len(), d.Features)
	}
	if value(t, d, 0, "age") != 0.34 || value(t, d, 0, "priors_count") != 0.4 || value(t, d, 0, "c_charge_degree=F") != 1 || value(t, d, 1, "c_charge_degree=M") != 1 {
		t.Errorf("features %v", d.X)
	}
	if race := d.Sensitive[1]; race.Name != "race" || race.Values[race.Groups[1]] != "Caucasian" {
		t.Errorf("groups %v", d.Sensitive)
	}
}

func TestReadCOMPASRefuses(t *testing.T) {
	row := "1,Male,34,25 - 45,African-American,0,0,1,4,-1,F,x,1,4,Low,3,Low,1\n"
	for _, c := range []struct{ name, body, where, what string }{
		{"an id twice", compasHead + row + row, "line 3, column id", "line 2"},
		{"a label of 2", compasHead + strings.Replace(row, "Low,1\n", "Low,2\n", 1), "line 2, column two_year_recid", "0, 1"},
		{"days in words", compasHead + strings.Replace(row, "-1,F", "one,F", 1), "line 2, column days_b_screening_arrest", "not a number"},
		{"an unknown race", compasHead + strings.Replace(row, "African-American", "x", 1), "line 2, column race", "dictionary"},
		{"another degree", compasHead + strings.Replace(row, ",F,", ",Q,", 1), "line 2, column c_charge_degree", "F, M"},
		{"no filter column", strings.Replace(compasHead, "score_text", "text", 1) + row, "line 1", "lacks score_text"},
	} {
		_, err := readCOMPAS(c.body)
		wantError(t, c.name, err, c.where, c.what)
	}
	_, err := LoadCOMPAS(t.TempDir(), TabularOptions{})
	wantError(t, "no data", err, "compas_two_years.csv.gz")
}

// ProPublica's analysis has 6172 rows; the groups were counted from the file with
// another program.
func TestRealCOMPAS(t *testing.T) {
	d, err := LoadCOMPAS(realData(t), TabularOptions{})
	if err != nil {
		t.Fatal(err)
	}
	again := 0
	for _, y := range d.Y {
		again += int(y)
	}
	groups := map[string]int{}
	for _, a := range d.Sensitive {
		for _, g := range a.Groups {
			groups[a.Values[g]]++
		}
	}
	if d.Report.Rows != 7214 || d.Len() != 6172 || again != 2809 || d.Report.Count(leftNoArrest) != 307 || d.Report.Count(leftFarArrest) != 735 {
		t.Errorf("%d of them again; %s", again, &d.Report)
	}
	if groups["African-American"] != 3175 || groups["Caucasian"] != 2103 || groups["Female"] != 1175 {
		t.Errorf("groups %v", groups)
	}
}
