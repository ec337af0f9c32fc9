// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package traffic

import (
	"strings"
	"testing"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	half := map[string]int{"one": 50, "two": 50}
	for name, tc := range map[string]struct {
		bodies, shares map[string]int
		ok             bool
		found          string
	}{
		"even halves hold":                        {map[string]int{"one": 500, "two": 500}, half, true, "500 of 1000 (50.0 %, asked 50.0 %, +0.0 sigma)"},
		"four deviations hold":                    {map[string]int{"one": 563, "two": 437}, half, true, "+4.0 sigma"},
		"more than four do not":                   {map[string]int{"one": 565, "two": 435}, half, false, "+4.1 sigma"},
		"nothing is no split":                     {nil, half, false, "0 of 0"},
		"weights need not add up to a hundred":    {map[string]int{"one": 900, "two": 100}, map[string]int{"one": 9, "two": 1}, true, "asked 90.0 %"},
		"a body that nobody asked for is a fault": {map[string]int{"one": 500, "two": 500, "three": 1}, half, false, `1 x "three"`},
		"a weight of nothing gets nothing":        {map[string]int{"one": 10, "two": 1}, map[string]int{"one": 1, "two": 0}, false, "asked 0.0 %"},
		"all for one":                             {map[string]int{"one": 10}, map[string]int{"one": 1}, true, "10 of 10"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tally := Tally{Bodies: tc.bodies}
			ok, found := tally.Split(tc.shares, 4)
			if ok != tc.ok || !strings.Contains(found, tc.found) {
				t.Errorf("got %t, %s", ok, found)
			}
		})
	}
}

func TestTallyTellsManyKindsApartButNotAll(t *testing.T) {
	t.Parallel()
	var tally Tally
	for i := range 200 {
		tally.count(Result{Status: 200, Body: strings.Repeat("x", i)}, 1)
	}
	if len(tally.Bodies) != maxKinds+1 || tally.Bodies["(others)"] != 200-maxKinds {
		t.Errorf("%d kinds, %d others", len(tally.Bodies), tally.Bodies["(others)"])
	}
}
