package data

import (
	"fmt"
	"path/filepath"
)

func init() {
	Register(tableKind("adult", "UCI Adult, incomes above $50,000", "adult.data and adult.test from the UCI repository (CC BY 4.0), with a header: adult/adult_train.csv.gz, adult/adult_test.csv.gz", adultSchema, true, LoadAdult))
}

// adultSchema follows the data dictionary of UCI's Adult (adult.names; Becker and
// Kohavi 1996). fnlwgt, a census weight, is no feature. Scales and ranges are
// round figures around what the dictionary and the census allow.
var adultSchema = schema{
	label:   "income",
	classes: []string{"<=50K", ">50K"},
	features: []feature{
		{column: "age", low: 0, high: 120, scale: 100},
		{column: "workclass", missing: "?", values: []string{
			"Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov", "State-gov",
			"Without-pay", "Never-worked"}},
		{column: "education", values: []string{
			"Bachelors", "Some-college", "11th", "HS-grad", "Prof-school", "Assoc-acdm", "Assoc-voc", "9th",
			"7th-8th", "12th", "Masters", "1st-4th", "10th", "Doctorate", "5th-6th", "Preschool"}},
		{column: "education_num", low: 1, high: 16, scale: 16},
		{column: "marital_status", values: []string{
			"Married-civ-spouse", "Divorced", "Never-married", "Separated", "Widowed",
			"Married-spouse-absent", "Married-AF-spouse"}},
		{column: "occupation", missing: "?", values: []string{
			"Tech-support", "Craft-repair", "Other-service", "Sales", "Exec-managerial", "Prof-specialty",
			"Handlers-cleaners", "Machine-op-inspct", "Adm-clerical", "Farming-fishing", "Transport-moving",
			"Priv-house-serv", "Protective-serv", "Armed-Forces"}},
		{column: "relationship", values: []string{
			"Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried"}},
		{column: "race", sensitive: true, values: []string{
			"White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"}},
		{column: "sex", sensitive: true, values: []string{"Female", "Male"}},
		{column: "capital_gain", low: 0, high: 1e6, scale: 1e5},
		{column: "capital_loss", low: 0, high: 1e6, scale: 1e4},
		{column: "hours_per_week", low: 0, high: 168, scale: 100},
		{column: "native_country", missing: "?", values: []string{
			"United-States", "Cambodia", "England", "Puerto-Rico", "Canada", "Germany",
			"Outlying-US(Guam-USVI-etc)", "India", "Japan", "Greece", "South", "China", "Cuba", "Iran",
			"Honduras", "Philippines", "Italy", "Poland", "Jamaica", "Vietnam", "Mexico", "Portugal",
			"Ireland", "France", "Dominican-Republic", "Laos", "Ecuador", "Taiwan", "Haiti", "Columbia",
			"Hungary", "Guatemala", "Nicaragua", "Scotland", "Thailand", "Yugoslavia", "El-Salvador",
			"Trinadad&Tobago", "Peru", "Hong", "Holand-Netherlands"}},
	},
}

// LoadAdult reads part "train" or "test" of UCI's Adult from the folder of real
// data. The label is 1 for an income above 50,000 dollars; race and sex are
// sensitive. Without SensitiveFeatures the column relationship still tells the sex
// of husbands and wives.
func LoadAdult(folder, part string, o TabularOptions) (*Tabular, error) {
	if part != "train" && part != "test" {
		return nil, fmt.Errorf("adult: part %q; allowed: train, test", part)
	}
	path := filepath.Join(folder, "adult", "adult_"+part+".csv.gz")
	return readFile(path, adultSchema.reader(o))
}
