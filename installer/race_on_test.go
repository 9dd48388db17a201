//go:build race

package installer

const raceEnabled = true
