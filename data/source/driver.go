//go:build !nosqlite

package source

import _ "modernc.org/sqlite" // the driver "sqlite"; it takes long to compile, and fuzzing does without it
