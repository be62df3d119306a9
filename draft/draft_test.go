package draft

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data/source"
)

// write puts files into a folder of the test's own.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// clinics is a table with a column of every sort.
func clinics(sizes ...int) string {
	r := rand.New(rand.NewPCG(1, 1))
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	var b strings.Builder
	b.WriteString("\ufeffPatientID,row,site,admitted,stamp,age,bmi,income,ward,smoker,diabetic,insured,Geschlecht,age_group,country,notes,mixed,zip,visit_id,empty,split,outcome,stage,stay\n")
	i := 0
	for site, n := range sizes {
		for range n {
			i++
			age, bmi, income := 18+r.IntN(80), fmt.Sprintf("%.1f", 15+30*r.Float64()), 20000+r.IntN(60000)
			if r.IntN(10) == 0 {
				bmi = pick("", "NA", "?")
			}
			if i == 7 {
				income = 990_000_000
			}
			mixed := fmt.Sprint(r.IntN(1000))
			if i%10 == 0 {
				mixed = "unknown"
			}
			fmt.Fprintf(&b, "P%06d,%d,site %d,2024-%02d-%02d,2024%02d%02d,%d,%s,%d,%s,%s,%s,%s,%s,%s,DE,\"seen, by dr %d\",%s,%d,v%d,,%s,%s,%s,%.2f\n",
				i*7, i, site, 1+r.IntN(12), 1+r.IntN(28), 1+r.IntN(12), 1+r.IntN(28), age, bmi, income, pick("A", "B", "C #1"), pick("yes", "no", "Yes"), pick("0", "1"),
				pick("nein", "ja"), pick("f", "m"), pick("18-40", "41-60", "61+"), r.IntN(1<<30), mixed, 10000+r.IntN(80)*7, i%60, pick("train", "test"),
				pick("alive", "dead"), pick("I", "II", "III"), 2+20*r.Float64())
		}
	}
	return b.String()
}

func drafted(t *testing.T, r Request) *Draft {
	t.Helper()
	d, err := New(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestColumnsAreTakenForWhatTheyAre(t *testing.T) {
	dir := write(t, map[string]string{"rows.csv": clinics(150, 90, 60)})
	d := drafted(t, Request{Path: filepath.Join(dir, "rows.csv"), Client: "site", Target: "outcome", Out: filepath.Join(dir, "study")})
	want := map[string]string{
		"PatientID": "left out: looks like an identifier", "row": "left out: looks like an identifier: it numbers the rows",
		"admitted": "left out: looks like dates", "stamp": "left out: looks like dates", "country": "left out: has one value only",
		"notes": "left out: looks like free text", "mixed": "left out: is mostly numbers, but some",
		"zip": "left out: has more than 50", "visit_id": "left out: looks like an identifier", "empty": "left out: is empty",
		"split": "left out: says which rows are for testing",
		"age":   "number [0 100] []", "bmi": "number [15 45] []", "income": "number [20000 100000] []", "ward": "category [] [A B C #1]",
		"smoker": "yes/no [] []", "diabetic": "yes/no [] []", "insured": "yes/no [] [nein ja]",
		"Geschlecht": "category [] [f m] sensitive", "age_group": "category [] [18-40 41-60 61+] sensitive",
		"stage": "category [] [I II III]", "stay": "number [0 22] []",
	}
	for _, c := range d.Columns {
		got := fmt.Sprint(c.Type, " ", c.Range, " ", c.Values)
		if c.Sensitive {
			got += " sensitive"
		}
		if c.Type == "" {
			got = "left out: " + c.Why
		}
		if w, ok := want[c.Name]; !ok || !strings.HasPrefix(got, w) || c.Type != "" && got != w {
			t.Errorf("%s is %q, want %q", c.Name, got, w)
		}
		delete(want, c.Name)
		if (c.Missing > 0) != (c.Name == "bmi" || c.Name == "empty") {
			t.Errorf("%s misses %d cells", c.Name, c.Missing)
		}
		if (c.Name == "income") != strings.Contains(c.Why, "far outside") {
			t.Errorf("%s: %s", c.Name, c.Why)
		}
	}
	for name := range want {
		t.Errorf("%s is not mentioned", name)
	}
	if got := fmt.Sprint(d.Rows, d.Clients); got != "300 [{site 0 150} {site 1 90} {site 2 60}]" {
		t.Error(got)
	}
}

func TestTaskFollowsFromTheTarget(t *testing.T) {
	for text, want := range map[string]string{
		"no yes Yes":                 "yes/no [] []",
		"0 1":                        "yes/no [] []",
		"oui non":                    "yes/no [] [non oui]",
		"dead alive":                 "yes/no [] [alive dead]",
		"2 1":                        "yes/no [] [1 2]",
		"b c a":                      "classes [] [a b c]",
		"3 1 2":                      "classes [] [1 2 3]",
		"0.5 1.5 2.5":                "number [0 2.6] []",
		"1 2 3 4 5 6 7 8 9 10 11 99": "number [0 100] []",
	} {
		values := strings.Fields(text)
		tally := newTally("y")
		for i := range 40 * len(values) {
			tally.add(values[i%len(values)], source.RawRows{}.ParseNumber)
		}
		c, task, err := tally.goal()
		if got := fmt.Sprint(task, " ", c.Range, " ", c.Values); err != nil || got != want {
			t.Errorf("%s is %s, want %s; %v", text, got, want, err)
		}
	}
}

func TestRequestsThatCannotBeMet(t *testing.T) {
	table := "site,age,outcome\n" + strings.Repeat("a,1,yes\nb,2,no\nc,3,no\n", 10)
	var many strings.Builder
	many.WriteString("site,age,outcome\n")
	for i := range 100 {
		fmt.Fprintf(&many, "a,%d,v%c%c\n", i*i, 'a'+i%26, 'a'+i/26)
	}
	for name, c := range map[string]struct {
		files                map[string]string
		path, client, target string
		want                 string
	}{
		"no target":      {map[string]string{"t.csv": table}, "t.csv", "site", "", "--target is missing"},
		"wrong target":   {map[string]string{"t.csv": table}, "t.csv", "site", "outcom", `--target "outcom" is not in the header of`},
		"nearest":        {map[string]string{"t.csv": table}, "t.csv", "site", "Outcomes", `did you mean "outcome"? It has site, age, outcome`},
		"nothing near":   {map[string]string{"t.csv": table}, "t.csv", "site", "zzzzzz", `t.csv. It has site, age, outcome`},
		"wrong client":   {map[string]string{"t.csv": table}, "t.csv", "sit", "outcome", `--client "sit" is not in the header`},
		"no client":      {map[string]string{"t.csv": table}, "t.csv", "", "outcome", "--client is missing"},
		"both the same":  {map[string]string{"t.csv": table}, "t.csv", "outcome", "outcome", "both outcome"},
		"constant":       {map[string]string{"t.csv": "site,x,y\na,1,1\nb,2,1\n"}, "t.csv", "site", "y", "nothing to predict"},
		"empty target":   {map[string]string{"t.csv": "site,x,y\na,1,\nb,2,\n"}, "t.csv", "site", "y", "is empty in every row"},
		"many classes":   {map[string]string{"t.csv": many.String()}, "t.csv", "site", "outcome", "has 100 different values in 100 rows"},
		"nobody's rows":  {map[string]string{"t.csv": table + ",1,no\n"}, "t.csv", "site", "outcome", "1 rows have no value in the column site"},
		"twice a column": {map[string]string{"t.csv": "site,y,y\na,1,2\n"}, "t.csv", "site", "y", `two that are called "y"`},
		"no rows":        {map[string]string{"t.csv": "site,x,y\n"}, "t.csv", "site", "y", "has no rows"},
		"no features":    {map[string]string{"t.csv": "site,id,y\na,1,0\nb,2,1\n"}, "t.csv", "site", "y", "no column is left to predict y from: id looks like an identifier"},
		"not there":      {nil, "t.csv", "site", "y", "names no file"},
		"ragged":         {map[string]string{"t.csv": "site,x,y\na,1\n"}, "t.csv", "site", "y", "line 2: 2 cells, the header has 3"},
		"folders":        {map[string]string{"d/a/x.csv": table}, "d", "", "", "holds folders, but not pictures"},
		"pictures":       {map[string]string{"d/a/cat/1.png": "", "d/a/dog/1.png": ""}, "d", "", "", "is no picture"},
		"both kinds":     {map[string]string{"d/a/cat/1.png": "", "d/a/dog/1.png": ""}, "d", "site", "", "take neither --client nor --target"},
	} {
		dir := write(t, c.files)
		_, err := New(t.Context(), Request{Path: filepath.Join(dir, c.path), Client: c.client, Target: c.target, Out: dir})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestFilesOfClients: one file a client, and a column that not all of them have.
func TestFilesOfClients(t *testing.T) {
	rows := func(extra string) string { return "x,y" + extra + "\n" + strings.Repeat("1.5,0\n2.5,1\n3.5,1\n", 1) }
	dir := write(t, map[string]string{"in/north.csv": rows(""), "in/south.csv": "y;x;z\n" + strings.Repeat("0;1,5;2\n1;2,5;3\n0;7,5;4\n", 20)})
	d := drafted(t, Request{Path: filepath.Join(dir, "in"), Target: "y", Out: filepath.Join(dir, "study")})
	if got := fmt.Sprint(d.Clients, " ", d.Task); got != "[{north 3} {south 60}] yes/no" {
		t.Error(got)
	}
	if i := slices.IndexFunc(d.Columns, func(c Column) bool { return c.Name == "z" }); i < 0 || d.Columns[i].Type != "" || !strings.Contains(d.Columns[i].Why, "north.csv has no such column") {
		t.Errorf("%+v", d.Columns)
	}
	if x := d.Columns[0]; x.Type != "number" || fmt.Sprint(x.Range) != "[0 8]" {
		t.Errorf("decimal commas: %+v", x)
	}
	for _, f := range d.Files {
		switch f.Name {
		case "run.yaml":
			if !strings.Contains(f.Text, "    path: \"../in\"\n") || strings.Contains(f.Text, "client: ") {
				t.Error(f.Text)
			}
		case "join.yaml":
			if !strings.Contains(f.Text, "    path: \"../in/north.csv\"\n") || !strings.Contains(f.Text, "name: north\n") {
				t.Error(f.Text)
			}
		case "serve.yaml":
			if !strings.Contains(f.Text, "participants: [north, south]\n") {
				t.Error(f.Text)
			}
		}
	}
}

// TestRareOutcomes: weights are suggested below a tenth, in the order of the classes, and
// nothing but a comment says so: the file trains without them, and with the line uncommented.
func TestRareOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		often, seldom string
		share         int // of a thousand
		want          string
	}{
		"yes":        {"no", "yes", 50, "[1, 15]"},
		"no":         {"1", "0", 20, "[45, 1]"},
		"other word": {"nein", "ja", 99, "[1, 9]"},
		"any word":   {"alive", "dead", 10, "[1, 95]"},
		"turned":     {"dead", "alive", 10, "[95, 1]"},
		"not rare":   {"no", "yes", 100, ""},
		"classes":    {"a", "b", 50, ""},
	} {
		var b strings.Builder
		b.WriteString("site,x,y\n")
		for i := range 1000 {
			y := c.often
			if i%1000 < c.share {
				y = c.seldom
			} else if name == "classes" && i%2 == 0 {
				y = "c"
			}
			fmt.Fprintf(&b, "s%d,%d,%s\n", i%3, i%70, y)
		}
		dir := write(t, map[string]string{"t.csv": b.String()})
		d := drafted(t, Request{Path: filepath.Join(dir, "t.csv"), Client: "site", Target: "y", Out: dir})
		checkMarks(t, d)
		text := runFile(t, d)
		line := "    # class_weights: " + c.want + "  # not public: replace or pay\n"
		if c.want == "" {
			if strings.Contains(text, "class_weights") {
				t.Errorf("%s: weights without need:\n%s", name, text)
			}
			continue
		}
		if !strings.Contains(text, line) || slices.ContainsFunc(d.NotPublic, func(s string) bool { return strings.Contains(s, "weights") }) {
			t.Errorf("%s: no line %q, or it is listed in %v:\n%s", name, line, d.NotPublic, text)
		}
		run, err := config.Resolve([]byte(strings.Replace(text, "# class_weights", "class_weights", 1)), nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := strings.ReplaceAll(fmt.Sprint(run.Algorithm.Local.ClassWeights), " ", ", "); got != c.want {
			t.Errorf("%s: the line without its sign is %s", name, got)
		}
	}
}

// TestClassesAreSoftmaxRegression: three classes need no network.
func TestClassesAreSoftmaxRegression(t *testing.T) {
	dir := write(t, map[string]string{"rows.csv": clinics(150, 90, 60)})
	d := drafted(t, Request{Path: filepath.Join(dir, "rows.csv"), Client: "site", Target: "stage", Out: filepath.Join(dir, "study")})
	run, err := config.Resolve([]byte(runFile(t, d)), nil)
	if err != nil || d.Task != "classes" || run.Model.Kind != "linear" || run.Model.Layers != nil {
		t.Errorf("%s: %+v; %v", d.Task, run.Model, err)
	}
}

// TestParquetIsDraftedAsText: the same rows give the same files, whatever they lie in.
func TestParquetIsDraftedAsText(t *testing.T) {
	type row struct {
		Site   string   `parquet:"site"`
		Age    int32    `parquet:"age"`
		BMI    *float64 `parquet:"bmi,optional"`
		Smoker bool     `parquet:"smoker"`
		Born   int32    `parquet:"born,date"`
		Ward   string   `parquet:"ward,dict"`
		Tags   []string `parquet:"tags,list"`
		Ill    bool     `parquet:"ill"`
	}
	var rows []row
	var text strings.Builder
	text.WriteString("site,age,bmi,smoker,born,ward,ill\n")
	for i := range 600 {
		r := row{Site: fmt.Sprintf("s%d", i%3), Age: int32(20 + i%61), Smoker: i%4 == 0, Born: int32(i * 7), Ward: []string{"A", "B"}[i/5%2], Tags: []string{"x"}, Ill: i%30 == 0}
		bmi := ""
		if v := 18.5 + float64(i%37)/2; i%7 > 0 {
			r.BMI, bmi = &v, fmt.Sprint(v)
		}
		rows = append(rows, r)
		fmt.Fprintf(&text, "%s,%d,%s,%v,%s,%s,%v\n", r.Site, r.Age, bmi, r.Smoker, time.Unix(0, 0).UTC().AddDate(0, 0, int(r.Born)).Format(time.DateOnly), r.Ward, r.Ill)
	}
	dir := write(t, map[string]string{"rows.csv": text.String()})
	if err := parquet.WriteFile(filepath.Join(dir, "rows.parquet"), rows, parquet.MaxRowsPerRowGroup(250)); err != nil {
		t.Fatal(err)
	}
	var drafts [2]*Draft
	for i, name := range []string{"rows.csv", "rows.parquet"} {
		drafts[i] = drafted(t, Request{Path: filepath.Join(dir, name), Client: "site", Target: "ill", Out: filepath.Join(dir, "study")})
	}
	for i, f := range drafts[0].Files {
		if got := strings.ReplaceAll(drafts[1].Files[i].Text, "rows.parquet", "rows.csv"); got != f.Text {
			t.Errorf("%s is\n%s\nof CSV it is\n%s", f.Name, got, f.Text)
		}
	}
	if !strings.Contains(drafts[1].Files[0].Text, "rows.parquet") || len(drafts[1].Columns) != 5 || drafts[1].Rows != 600 {
		t.Errorf("%+v", drafts[1])
	}
}

func TestFriendlyRanges(t *testing.T) {
	for _, c := range []struct{ low, high, wantLow, wantHigh float64 }{
		{18.3, 97.6, 0, 100}, {13, 54.2, 10, 55}, {150, 199, 150, 200}, {0.31, 3.9, 0, 4}, {-3.2, 2.9, -4, 3}, {0, 1, 0, 1}, {1e-7, 9e-7, 0, 9e-7},
		{-120, -4, -120, 0}, {1990, 2024, 1990, 2025}, {0.1, 0.3, 0.1, 0.3}, {5, 5, 4.4, 5.6},
	} {
		got := friendly(c.low, c.high)
		if got[0] > c.low || got[1] < c.high {
			t.Errorf("[%v, %v] is rounded inward to %v", c.low, c.high, got)
		}
		if got[0] != c.wantLow || got[1] != c.wantHigh {
			t.Errorf("[%v, %v] becomes %v, want [%v, %v]", c.low, c.high, got, c.wantLow, c.wantHigh)
		}
	}
	r := rand.New(rand.NewPCG(3, 3))
	for range 2000 {
		low := r.NormFloat64() * 100
		high := low + 1e-3 + r.ExpFloat64()*100
		if got := friendly(low, high); got[0] > low+1e-6 || got[1] < high-1e-6 || got[1]-got[0] > 2*(high-low) {
			t.Fatalf("[%v, %v] becomes %v", low, high, got)
		}
	}
}

func TestSettingsFollowFromSizes(t *testing.T) {
	for _, c := range []struct {
		rows  []int
		want  string
		taken bool
	}{
		{[]int{100, 100, 100}, "80 40 100 1e-05", false},
		{[]int{250, 250, 250}, "200 40 100 1e-05", false},
		{[]int{200, 500, 900}, "400 40 100 1e-05", false},
		{[]int{150, 200, 400, 800, 2000, 9000}, "700 70 100 1e-05", false}, // 0.8 of the upper middle, at least a tenth of the largest
		{[]int{1}, "1 1 100 1e-05", false},
		{[]int{200_000, 300}, "150000 15000 100 1e-06", true},
	} {
		var clients []Client
		total := 0
		for _, n := range c.rows {
			clients, total = append(clients, Client{"c", n}), total+n
		}
		s := settle(clients, total)
		if got := fmt.Sprint(s.publicSize, s.batch, s.rounds, s.delta); got != c.want || s.deltaTaken != c.taken {
			t.Errorf("%v: %s (taken %v), want %s", c.rows, got, s.deltaTaken, c.want)
		}
	}
}

// TestYesAndNoAreTwoGroups: however a sensitive attribute's yes and no are written, the
// fairness audit gets two groups, and a list that tells nothing of the data.
func TestYesAndNoAreTwoGroups(t *testing.T) {
	var b strings.Builder
	b.WriteString("site,disabled,Geschlecht,y\n")
	for i := range 200 {
		fmt.Fprintf(&b, "s%d,%s,%s,%d\n", i%2, []string{"Yes", "yes", "No", "no", "NO"}[i%5], []string{"f", "m"}[i/2%2], i/3%2)
	}
	dir := write(t, map[string]string{"t.csv": b.String()})
	d := drafted(t, Request{Path: filepath.Join(dir, "t.csv"), Client: "site", Target: "y", Out: dir})
	checkMarks(t, d)
	run, err := config.Resolve([]byte(runFile(t, d)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(run.Data.Sensitive); !strings.Contains(got, "{disabled  [] [no yes] ") || !strings.Contains(got, "{Geschlecht  [] [f m] ") {
		t.Error(got)
	}
	for _, key := range d.NotPublic {
		if strings.HasPrefix(key, "data.sensitive.") != (key == "data.sensitive.Geschlecht.values") {
			t.Errorf("%s is listed", key)
		}
	}
}
