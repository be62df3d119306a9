package audit

import _ "github.com/coterie-fl/coterie/all" // every data set, method and protection
