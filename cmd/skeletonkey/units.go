package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// size is a flag's number of bytes: digits, and K, M, G, T or P for powers of 1024, with
// or without a B.
type size int64

func (s *size) String() string { return strconv.FormatInt(int64(*s), 10) }

func (s *size) Type() string { return "size" }

// Set reads what was given.
func (s *size) Set(text string) error {
	digits := strings.TrimSuffix(strings.ToUpper(strings.TrimSpace(text)), "B")
	shift := 0
	if digits != "" {
		if i := strings.IndexByte("KMGTP", digits[len(digits)-1]); i >= 0 {
			shift, digits = 10*(i+1), digits[:len(digits)-1]
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64>>shift {
		return fmt.Errorf("%q is not a size, such as 500, 64K or 10G", text)
	}
	*s = size(n << shift)
	return nil
}

// span is a time as chirp_server takes it: seconds, or with s, m, h or d.
type span struct{ d *time.Duration }

func (s span) String() string {
	if s.d == nil {
		return ""
	}
	return s.d.String()
}

func (s span) Type() string { return "time" }

// Set reads what was given.
func (s span) Set(text string) error {
	digits, unit := strings.TrimSpace(text), time.Second
	if digits != "" {
		units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}
		if u, ok := units[digits[len(digits)-1]|0x20]; ok {
			unit, digits = u, digits[:len(digits)-1]
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > int64(math.MaxInt64/unit) {
		return fmt.Errorf("%q is not a time, such as 300, 300s, 5m or 1d", text)
	}
	*s.d = time.Duration(n) * unit
	return nil
}
