//go:build !nosqlite

package store

import _ "modernc.org/sqlite" // the driver "sqlite"; it takes long to compile, and fuzzing does without it
