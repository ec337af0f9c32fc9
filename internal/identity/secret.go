// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package identity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"
)

// longestWait bounds the wait for the next deadline, since a machine's clock may jump. To look costs nothing.
const longestWait = time.Hour

// keep has the Secret hold a keyring that is good, and puts it in force, now and whenever the Secret or the time changes it.
func (i *Identity) keep(ctx context.Context) {
	changed := i.watchSecret(ctx)
	i.awaitOwner(ctx)
	for ctx.Err() == nil {
		wait, err := i.settle(ctx)
		if err != nil && ctx.Err() == nil {
			i.opts.Logger.Warn("the Secret of the control plane's certificates cannot be kept; tried again",
				slog.String("secret", i.secretName()), slog.Any("error", err), slog.Bool("serving", i.serving.Load() != nil))
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-i.opts.Clock.After(wait):
		}
	}
}

// awaitOwner waits for the Deployment.
func (i *Identity) awaitOwner(ctx context.Context) {
	for until := i.opts.Clock.Now().Add(i.opts.Await); ctx.Err() == nil && i.opts.Clock.Now().Before(until); {
		if _, _, err := i.owners(ctx, nil); err == nil && i.owned {
			return
		}
		select {
		case <-ctx.Done():
		case <-i.opts.Clock.After(retry):
		}
	}
}

func (i *Identity) secretName() string { return i.opts.Namespace + "/" + i.opts.Secret }

// watchSecret tells of every change of the Secret.
func (i *Identity) watchSecret(ctx context.Context) <-chan struct{} {
	changed := make(chan struct{}, 1)
	note := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	watch := cache.NewListWatchFromClient(i.clients.CoreV1().RESTClient(), "secrets", i.opts.Namespace, fields.OneTermEqualSelector("metadata.name", i.opts.Secret))
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: watch, ObjectType: &corev1.Secret{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { note() },
			UpdateFunc: func(any, any) { note() },
			DeleteFunc: func(any) { note() },
		},
	})
	go informer.RunWithContext(ctx)
	return changed
}

// errRaced says that another replica wrote first; its keyring is read at once.
var errRaced = errors.New("another replica wrote first")

// attempts is how often a write that came too late is tried again without a wait.
const attempts = 5

// settle reads the Secret, writes it where it must change, and says when to look again.
func (i *Identity) settle(ctx context.Context) (time.Duration, error) {
	for range attempts {
		k, err := i.once(ctx)
		if errors.Is(err, errRaced) {
			continue
		}
		if err != nil {
			return retry, err
		}
		i.held = k
		i.take(k)
		if err := i.publish(ctx); errors.Is(err, errRaced) {
			continue
		} else if err != nil {
			return retry, err
		}
		return max(retry, min(longestWait, k.deadline().Sub(i.opts.Clock.Now()))), nil
	}
	return retry, errRaced
}

func (i *Identity) once(ctx context.Context) (*keyring, error) {
	secrets := i.clients.CoreV1().Secrets(i.opts.Namespace)
	secret, err := secrets.Get(ctx, i.opts.Secret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return i.create(ctx)
	}
	if err != nil {
		return nil, err
	}
	k, faults := readKeyring(secret.Data)
	if i.held != nil && k.rootOf(k.signer) == nil {
		k = *i.held // what was lost is still here
	}
	done, err := k.tend(i.opts.Clock.Now(), i.opts.Names)
	if err != nil {
		return nil, err
	}
	data, err := k.data()
	if err != nil {
		return nil, err
	}
	owners, adopted, err := i.owners(ctx, secret.OwnerReferences)
	if err != nil {
		return nil, err
	}
	if same(secret.Data, data) && !adopted {
		return &k, nil
	}
	secret.Data, secret.OwnerReferences = merged(secret.Data, data), owners
	if _, err := secrets.Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
		return nil, raced(err)
	}
	i.tell("the Secret of the control plane's certificates was changed", faults, done)
	return &k, nil
}

// create makes the Secret, again with what it held where it was removed under a running replica.
func (i *Identity) create(ctx context.Context) (*keyring, error) {
	k := keyring{}
	if i.held != nil {
		k = *i.held
	}
	if _, err := k.tend(i.opts.Clock.Now(), i.opts.Names); err != nil {
		return nil, err
	}
	data, err := k.data()
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: i.opts.Secret, Namespace: i.opts.Namespace, Labels: map[string]string{appLabel: i.opts.App}},
		Type:       corev1.SecretTypeOpaque, Data: data,
	}
	if secret.OwnerReferences, _, err = i.owners(ctx, secret.OwnerReferences); err != nil {
		return nil, err
	}
	if i.owned && len(secret.OwnerReferences) == 0 {
		return &k, nil // the control plane is being removed, and leaves nothing behind
	}
	if _, err := i.clients.CoreV1().Secrets(i.opts.Namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("%w: create the namespace, or name the control plane's own with --namespace", err)
		}
		return nil, raced(err)
	}
	i.tell("the Secret of the control plane's certificates was made", nil, []string{"valid until " + k.serving.NotAfter.Format(time.RFC3339)})
	return &k, nil
}

// raced tells a write that came too late from one that failed.
func raced(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return errRaced
	}
	return err
}

// owners are an object's with the Deployment among them, so that it goes when the Deployment goes; true if it was not.
func (i *Identity) owners(ctx context.Context, have []metav1.OwnerReference) ([]metav1.OwnerReference, bool, error) {
	deployment, err := i.clients.AppsV1().Deployments(i.opts.Namespace).Get(ctx, i.opts.Owner, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || (err == nil && deployment.DeletionTimestamp != nil) {
		return have, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading the Deployment that owns what is written: %w", err)
	}
	i.owned = true
	ours := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: deployment.Name, UID: deployment.UID}
	var others []metav1.OwnerReference
	for _, owner := range have {
		if owner.UID == ours.UID {
			return have, false, nil
		}
		if owner.Kind != ours.Kind || owner.Name != ours.Name { // else that of an earlier installation
			others = append(others, owner)
		}
	}
	return append(others, ours), true, nil
}

// tell logs what became of the Secret. Faults mean that somebody else wrote it.
func (i *Identity) tell(message string, faults, done []string) {
	attributes := []any{slog.String("secret", i.secretName())}
	if len(done) > 0 {
		attributes = append(attributes, slog.String("done", strings.Join(done, "; ")))
	}
	if len(faults) > 0 {
		i.opts.Logger.Warn(message+": what it held was damaged", append(attributes, slog.String("faults", strings.Join(faults, "; ")))...)
		return
	}
	i.opts.Logger.Info(message, attributes...)
}
