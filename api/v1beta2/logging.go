// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package v1beta2

// Logging holds the log settings of a proxy.
type Logging struct {
	// AccessLog of the proxy.
	// +optional
	AccessLog *AccessLog `json:"accessLog,omitempty"`
}

// AccessLog is where a proxy writes a line for each request.
type AccessLog struct {
	// File to which lines are appended.
	// +optional
	File *FileAccessLog `json:"file,omitempty"`
}

// FileAccessLog is an access log in a file.
type FileAccessLog struct {
	// Path of the file; /dev/stdout for the container's output.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Path string `json:"path"`
	// Format of a line; Envoy's own when absent.
	// +optional
	Format *LoggingFormat `json:"format,omitempty"`
}

// LoggingFormat is the format of an access log line; set one member.
type LoggingFormat struct {
	// Text is a format string with Envoy's command operators, up to 1000 characters.
	// +optional
	Text *string `json:"text,omitempty"`
	// JSON makes each line a JSON object of these keys, in this order.
	// +optional
	JSON []JSONFormatRef `json:"json,omitempty"`
}

// JSONFormatRef is one key of a JSON access log line.
type JSONFormatRef struct {
	// Key in the JSON object, up to 100 characters.
	// +kubebuilder:validation:MinLength=1
	Key string `json:"key"`
	// Value, text with Envoy's command operators, up to 100 characters.
	// +kubebuilder:validation:MinLength=1
	Value string `json:"value"`
}
