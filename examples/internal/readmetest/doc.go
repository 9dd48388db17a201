// Package readmetest runs what an example's README.md tells a person to type, as an
// ordinary user, and compares what comes out with what the README says. It is for the
// tests of the examples.
//
// Guarantee: every indented block of a section is used, to the letter but for the ports
// ([Ports]), by these rules:
//
//   - A block that begins with "skeletonkey serve " is left running until the test ends,
//     and then has to end well.
//   - A block after prose that ends in "says" or "says last" is the end of what the block
//     before it printed.
//   - Any other block is given to a shell of its own, in the top directory of a copy of
//     the sources, and has to succeed.
//
// Limits: variables set in a block are gone in the next. The copy of the sources has the
// example only. Where the test does not run as root, the ordinary user is its own.
package readmetest
