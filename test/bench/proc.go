// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// ticks is how many units of /proc/PID/stat make a second; Linux has told programs 100 for decades, whatever the kernel's own rate.
const ticks = 100

// cpuSeconds returns the processor time that a process has used, in all its threads.
func cpuSeconds(pid int) (float64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("processor time: %w", err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("processor time: unexpected %q", stat)
	}
	user, err := strconv.ParseFloat(fields[11], 64)
	if err != nil {
		return 0, fmt.Errorf("processor time: %w", err)
	}
	system, err := strconv.ParseFloat(fields[12], 64)
	if err != nil {
		return 0, fmt.Errorf("processor time: %w", err)
	}
	return (user + system) / ticks, nil
}

// memory returns the resident memory of a process, now and at its peak, in kilobytes.
func memory(pid int) (now, peak int, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, fmt.Errorf("memory: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "VmRSS:":
			now, err = strconv.Atoi(fields[1])
		case "VmHWM:":
			peak, err = strconv.Atoi(fields[1])
		}
		if err != nil {
			return 0, 0, fmt.Errorf("memory: %w", err)
		}
	}
	return now, peak, nil
}

// load returns the machine's load average over one minute.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	first, _, _ := strings.Cut(string(b), " ")
	return first
}
