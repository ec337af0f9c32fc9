// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package inject

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tulle-mesh/tulle/internal/admission/review"
)

// The proxy's own volumes. The token is for the control plane alone; the other holds its sockets and its bootstrap.
const (
	volumeToken = "tulle-token"
	volumeFiles = "tulle-tmp"
	volumeSDS   = "appmesh-sds-socket-volume"

	tokenPath = "/var/run/secrets/tulle" //nolint:gosec // G101: a path
	filesPath = "/tmp"

	// tokenAudience is whom the token is for, and tokenSeconds how long it lives; the kubelet writes a new one in time.
	tokenAudience = "tulle"
	tokenSeconds  = 3600
)

func portOf(port uint16) intstr.IntOrString { return intstr.FromInt32(int32(port)) }

func tokenVolume() corev1.Volume {
	return corev1.Volume{Name: volumeToken, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
			Audience: tokenAudience, ExpirationSeconds: new(int64(tokenSeconds)), Path: "token",
		}}},
	}}}
}

// addVolume adds a volume to the pod unless it has one of that name.
func (s *subject) addVolume(v corev1.Volume) error {
	if slices.ContainsFunc(s.volumes, func(have corev1.Volume) bool { return have.Name == v.Name }) {
		return nil
	}
	s.volumes = append(s.volumes, v)
	return s.doc.insert(last, v, "spec", "volumes")
}

// addOwn adds a volume of the mesh. One of that name that the pod came with would stand in its place.
func (s *subject) addOwn(v corev1.Volume) error {
	if s.volumeOf(v.Name) != nil {
		return review.Refusef("%s has a volume %q, whose name is the mesh's: call it otherwise", s, v.Name)
	}
	return s.addVolume(v)
}

// addVolumes adds those that every proxy of a node has. The secrets' and the socket's come with their mounts.
func (s *subject) addVolumes() error {
	if err := s.addOwn(tokenVolume()); err != nil {
		return err
	}
	return s.addOwn(corev1.Volume{Name: volumeFiles, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
}

// proxyMounts are the mounts of a node's proxy. What annotations ask for is read-only.
func (s *subject) proxyMounts() ([]corev1.VolumeMount, error) {
	mounts := []corev1.VolumeMount{
		{Name: volumeToken, MountPath: tokenPath, ReadOnly: true},
		{Name: volumeFiles, MountPath: filesPath},
	}
	socket, err := s.sdsMount()
	if err != nil {
		return nil, err
	}
	mounts = append(mounts, socket...)
	taken := map[string]string{}
	for _, m := range mounts {
		taken[m.MountPath] = "the mesh"
	}
	add := func(annotation string, m mount, volume string) error {
		if by, has := taken[m.path]; has {
			return s.wrong(annotation, "%s:%s: %s has mounted something at that path already; choose another", m.volume, m.path, by)
		}
		taken[m.path] = annotation
		mounts = append(mounts, corev1.VolumeMount{Name: volume, MountPath: m.path, ReadOnly: true})
		return nil
	}
	secrets, err := s.mounts(annotationSecretMounts)
	if err != nil {
		return nil, err
	}
	for _, m := range secrets {
		volume, err := s.secretVolume(m.volume)
		if err != nil {
			return nil, err
		}
		if err := add(annotationSecretMounts, m, volume); err != nil {
			return nil, err
		}
	}
	volumes, err := s.mounts(annotationVolumeMounts)
	if err != nil {
		return nil, err
	}
	for _, m := range volumes {
		if !slices.ContainsFunc(s.volumes, func(v corev1.Volume) bool { return v.Name == m.volume }) {
			return nil, s.wrong(annotationVolumeMounts, "the pod has no volume %q: add it to spec.volumes, or correct the name", m.volume)
		}
		if err := add(annotationVolumeMounts, m, m.volume); err != nil {
			return nil, err
		}
	}
	return mounts, nil
}

var (
	secretName  = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
	notInVolume = regexp.MustCompile(`[^a-z0-9-]`)
)

// secretVolume is the volume of a secret, which is made if the pod has none. It has the secret's name as far as a volume can be called so.
func (s *subject) secretVolume(secret string) (string, error) {
	if !secretName.MatchString(secret) {
		return "", s.wrong(annotationSecretMounts, "%q cannot be the name of a Secret", secret)
	}
	name := notInVolume.ReplaceAllString(secret, "-")
	if other := s.volumeOf(name); len(name) > 63 || other != nil && !isSecret(other, secret) {
		// A name that is too long, or that something else has, gets the secret's mark.
		sum := sha256.Sum256([]byte(secret))
		name = strings.TrimRight(name[:min(len(name), 52)], "-") + "-" + hex.EncodeToString(sum[:5])
	}
	if have := s.volumeOf(name); have != nil && !isSecret(have, secret) {
		return "", s.wrong(annotationSecretMounts, "%s: the pod has a volume %q that is something else: call it otherwise", secret, name)
	}
	return name, s.addVolume(corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}})
}

func (s *subject) volumeOf(name string) *corev1.Volume {
	for i := range s.volumes {
		if s.volumes[i].Name == name {
			return &s.volumes[i]
		}
	}
	return nil
}

func isSecret(v *corev1.Volume, secret string) bool {
	return v.Secret != nil && v.Secret.SecretName == secret
}

// wantsSDS says that the proxy gets its certificates from the socket. A proxy that has none from there does not get it: a pod with a socket that is not there
// does not start.
func (s *subject) wantsSDS() bool {
	return s.settings.SDS && s.usesSDS && !strings.EqualFold(s.pod.Annotations[annotationSDS], "disabled")
}

// sdsMount mounts the socket, over the pod's own volume of it where there is one.
func (s *subject) sdsMount() ([]corev1.VolumeMount, error) {
	if !s.wantsSDS() {
		if s.usesSDS && !s.settings.SDS {
			s.warn("%s has certificates from a secret discovery service, and --enable-sds is off", s.member)
		}
		return nil, nil
	}
	name := volumeSDS
	for i := range s.volumes {
		if host := s.volumes[i].HostPath; host != nil && host.Path == s.settings.SDSPath {
			name = s.volumes[i].Name
		}
	}
	if have := s.volumeOf(name); have != nil && (have.HostPath == nil || have.HostPath.Path != s.settings.SDSPath) {
		return nil, review.Refusef("%s has a volume %q, whose name is the mesh's: call it otherwise", s, name)
	}
	err := s.addVolume(corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: s.settings.SDSPath, Type: new(corev1.HostPathSocket)},
	}})
	return []corev1.VolumeMount{{Name: name, MountPath: s.settings.SDSPath}}, err
}
