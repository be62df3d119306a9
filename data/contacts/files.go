package contacts

// The challenge's eight files, and the columns of each that are written; more may be there.
const (
	personFile     = "person.csv"
	householdFile  = "household.csv"
	residenceFile  = "residence_locations.csv"
	locationFile   = "activity_locations.csv"
	assignmentFile = "activity_location_assignment.csv"
	networkFile    = "population_network.csv"
	trainingFile   = "disease_outcome_training.csv"
	targetFile     = "disease_outcome_target.csv"
)

var columnsOf = map[string][]string{
	personFile:     {"hid", "pid", "person_number", "age", "sex"},
	householdFile:  {"hid", "rlid", "hh_size"},
	residenceFile:  {"rlid", "longitude", "latitude"},
	locationFile:   {"alid", "longitude", "latitude", "work", "shopping", "school", "other", "college", "religion"},
	assignmentFile: {"pid", "lid", "activity_type", "start_time", "duration"},
	networkFile:    {"pid1", "pid2", "lid", "start_time", "duration", "activity1", "activity2"},
	trainingFile:   {"day", "pid", "state"},
	targetFile:     {"pid", "infected"},
}

// Files are the eight, in the order in which they are written and read.
func Files() []string {
	return []string{personFile, householdFile, residenceFile, locationFile, assignmentFile, networkFile, trainingFile, targetFile}
}
