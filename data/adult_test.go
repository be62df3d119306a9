package data

import (
	"slices"
	"strings"
	"testing"
)

const adultHead = "age,workclass,fnlwgt,education,education_num,marital_status,occupation,relationship,race,sex,capital_gain,capital_loss,hours_per_week,native_country,income\n"

const adultRow = "39,State-gov,77516,Bachelors,13,Never-married,Adm-clerical,Not-in-family,White,Male,2174,0,40,United-States,<=50K\n"

func readAdult(body string, o TabularOptions) (*Tabular, error) {
	return readTabular("adult.csv", strings.NewReader(body), adultSchema, o)
}

// value is a feature of a row by its name.
func value(t *testing.T, d *Tabular, row int, name string) float64 {
	t.Helper()
	i := slices.Index(d.Names, name)
	if i < 0 {
		t.Fatalf("no feature %q", name)
	}
	return d.X[row*d.Features+i]
}

func TestReadAdult(t *testing.T) {
	missing := strings.Replace(strings.Replace(adultRow, "State-gov", "?", 1), "<=50K", ">50K", 1)
	missing = strings.Replace(missing, "White,Male", "Black,Female", 1)
	d, err := readAdult(adultHead+adultRow+missing, TabularOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// 5 numbers and 8 + 16 + 7 + 14 + 6 + 41 categories.
	if d.Features != 97 || len(d.Names) != 97 || len(d.X) != 2*97 || d.Len() != 2 {
		t.Fatalf("%d features, %d names, %d values", d.Features, len(d.Names), len(d.X))
	}
	for name, want := range map[string]float64{
		"age": 0.39, "workclass=State-gov": 1, "workclass=Private": 0, "education=Bachelors": 1,
		"education_num": 13.0 / 16, "capital_gain": 0.02174, "hours_per_week": 0.4, "native_country=United-States": 1,
	} {
		if got := value(t, d, 0, name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	ones := 0
	for _, v := range d.X[:97] {
		if v == 1 {
			ones++
		}
	}
	if ones != 6 {
		t.Errorf("%d categories are set, want 6", ones)
	}
	if value(t, d, 1, "workclass=State-gov") != 0 || missingIn(d, "workclass") != 1 || missingIn(d, "occupation") != 0 {
		t.Errorf("missing %d and %d", missingIn(d, "workclass"), missingIn(d, "occupation"))
	}
	if d.Y[0] != 0 || d.Y[1] != 1 {
		t.Errorf("labels %v", d.Y)
	}
	race, sex := d.Sensitive[0], d.Sensitive[1]
	if race.Values[race.Groups[1]] != "Black" || sex.Values[sex.Groups[0]] != "Male" || sex.Values[sex.Groups[1]] != "Female" {
		t.Errorf("groups %v", d.Sensitive)
	}
	if slices.ContainsFunc(d.Names, func(n string) bool { return strings.HasPrefix(n, "sex") || strings.HasPrefix(n, "race") }) {
		t.Error("sensitive attributes are features without being asked for")
	}
	d, err = readAdult(adultHead+adultRow+missing, TabularOptions{SensitiveFeatures: true})
	if err != nil || d.Features != 104 || d.Len() != 2 || len(d.X) != 2*104 || value(t, d, 0, "sex=Male") != 1 {
		t.Fatal(d, err)
	}
	if d.Report.Rows != 2 || d.Report.Kept != 2 || missingIn(d, "workclass") != 1 || len(d.Sensitive[0].Groups) != 2 {
		t.Error(&d.Report, missingIn(d, "workclass"))
	}
}

func TestReadAdultRefuses(t *testing.T) {
	for _, c := range []struct{ name, body, where, what string }{
		{"no header", adultRow + adultRow, "line 1", "lacks"},
		{"a header only", adultHead, "adult.csv", "no row is left"},
		{"a short row", adultHead + "39,State-gov\n", "line 2", "2 cells"},
		{"NaN", adultHead + strings.Replace(adultRow, "39", "NaN", 1), "line 2, column age", "not a number"},
		{"150 years", adultHead + strings.Replace(adultRow, "39", "150", 1), "line 2, column age", "0 to 120"},
		{"another class of work", adultHead + strings.Replace(adultRow, "State-gov", "State", 1), "line 2, column workclass", "dictionary"},
		{"a missing race", adultHead + strings.Replace(adultRow, "White", "?", 1), "line 2, column race", "dictionary"},
		{"a label with a dot", adultHead + strings.Replace(adultRow, "<=50K", "<=50K.", 1), "line 2, column income", "dictionary"},
	} {
		_, err := readAdult(c.body, TabularOptions{})
		wantError(t, c.name, err, c.where, c.what)
	}
	if _, err := LoadAdult(t.TempDir(), "valid", TabularOptions{}); err == nil || !strings.Contains(err.Error(), "train, test") {
		t.Error(err)
	}
	_, err := LoadAdult(t.TempDir(), "test", TabularOptions{})
	wantError(t, "no data", err, "adult_test.csv.gz", "docs/data.md")
}

func FuzzReadAdult(f *testing.F) {
	f.Add(adultHead + adultRow)
	f.Fuzz(func(t *testing.T, body string) {
		d, err := readAdult(body, TabularOptions{})
		if err != nil {
			return
		}
		if len(d.X) != d.Features*d.Len() || len(d.Sensitive[0].Groups) != d.Len() {
			t.Fatalf("%d values, %d rows, %d groups", len(d.X), d.Len(), len(d.Sensitive[0].Groups))
		}
		for _, v := range d.X {
			if !(v >= 0 && v <= 100) {
				t.Fatalf("a feature of %v", v)
			}
		}
	})
}

// Counts of the data folder's own notes; missing values and groups counted there
// with another program.
func TestRealAdult(t *testing.T) {
	folder := realData(t)
	missing := map[string]int{}
	groups := map[string]int{}
	for part, want := range map[string][2]int{"train": {32561, 7841}, "test": {16281, 3846}} {
		d, err := LoadAdult(folder, part, TabularOptions{})
		if err != nil {
			t.Fatal(err)
		}
		high := 0
		for _, y := range d.Y {
			high += int(y)
		}
		if d.Len() != want[0] || high != want[1] || d.Report.LeftOut != nil {
			t.Errorf("%s: %d rows, %d of them above 50,000 dollars; %s", part, d.Len(), high, &d.Report)
		}
		for _, column := range []string{"workclass", "occupation", "native_country"} {
			missing[column] += missingIn(d, column)
		}
		for _, a := range d.Sensitive {
			for _, g := range a.Groups {
				groups[a.Values[g]]++
			}
		}
	}
	if missing["workclass"] != 2799 || missing["occupation"] != 2809 || missing["native_country"] != 857 {
		t.Errorf("missing %v", missing)
	}
	if groups["Female"] != 16192 || groups["Male"] != 32650 || groups["Black"] != 4685 || groups["White"] != 41762 {
		t.Errorf("groups %v", groups)
	}
}

// missingIn counts the rows that lack a value of a column: its features are all 0.
func missingIn(d *Tabular, column string) (count int) {
	for i := range d.Len() {
		sum := 0.0
		for j, name := range d.Names {
			if strings.HasPrefix(name, column+"=") {
				sum += d.X[i*d.Features+j]
			}
		}
		if sum == 0 {
			count++
		}
	}
	return count
}
