// Package all makes every data set, method and protection known to run files: import it for its effect.
package all

import (
	_ "github.com/coterie-fl/coterie/data"
	_ "github.com/coterie-fl/coterie/data/contacts"
	_ "github.com/coterie-fl/coterie/data/source"
	_ "github.com/coterie-fl/coterie/fl/method"
	_ "github.com/coterie-fl/coterie/fl/protect"
)
