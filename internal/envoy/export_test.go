// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

// CheckFormat lets tests hold the check of log formats against the real Envoy.
func CheckFormat(text string) error { return checkFormat(text) }

// EveryOperator is a log format that has all operators in it.
func EveryOperator() string {
	text := ""
	for name, op := range logFormats().operators {
		switch {
		case name == "COALESCE" || name == "METADATA" || name == "COMMON_DURATION": // their arguments have forms of their own
		case op.required:
			text += "%" + name + "(a)%\n"
		default:
			text += "%" + name + "%\n"
		}
	}
	return text
}
