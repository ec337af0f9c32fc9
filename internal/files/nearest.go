// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package files

import "strings"

// nearest is the one of names that name was most likely meant to be: the one with the fewest edits, no more than a third
// of its letters. It is empty where none is near.
func nearest(name string, names []string) string {
	if len(name) > maxShown {
		return ""
	}
	best, least := "", len(name)/3+1
	for _, candidate := range names {
		if strings.EqualFold(name, candidate) {
			return candidate
		}
		if n := edits(strings.ToLower(name), strings.ToLower(candidate)); n < least {
			best, least = candidate, n
		}
	}
	return best
}

// edits counts the insertions, deletions, replacements and swaps of neighbours that lead from a to b.
func edits(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
