// Package source reads people's own data: tables from files and databases, and pictures.
package source
