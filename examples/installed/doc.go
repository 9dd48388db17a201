// Package installed holds an example: a job whose software is installed by its
// version from a published directory. README.md has the steps; the test takes them
// from there.
package installed
