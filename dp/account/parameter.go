package account

import "fmt"

// parameter is the error for a value that a caller must change.
func parameter(name string, value any, want string) error {
	return fmt.Errorf("%w: %s = %v, want %s", ErrParameter, name, value, want)
}
