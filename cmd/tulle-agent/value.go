// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// secondsValue is a duration given as Go writes one, or as a bare number of seconds, as App Mesh's variables give it.
type secondsValue struct{ to *time.Duration }

var _ pflag.Value = secondsValue{}

func (v secondsValue) Set(text string) error {
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		text = strconv.FormatFloat(n, 'f', -1, 64) + "s"
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return fmt.Errorf("%q is not a time: want seconds, such as 20, or a duration, such as 1m30s", text)
	}
	*v.to = d
	return nil
}

func (v secondsValue) String() string {
	if v.to == nil {
		return ""
	}
	return v.to.String()
}

// Type is the word for the value in help.
func (v secondsValue) Type() string { return "seconds" }

// portValue is a port from 1 to 65535.
type portValue struct{ to *uint16 }

var _ pflag.Value = portValue{}

func (v portValue) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return fmt.Errorf("%q is not a port: want 1 to 65535", text)
	}
	*v.to = uint16(n)
	return nil
}

func (v portValue) String() string {
	if v.to == nil {
		return ""
	}
	return strconv.Itoa(int(*v.to))
}

// Type is the word for the value in help.
func (v portValue) Type() string { return "port" }
