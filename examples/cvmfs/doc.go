// Package cvmfs holds an example: a job whose software is a CVMFS repository. README.md
// has the steps; the test takes them from there.
package cvmfs
