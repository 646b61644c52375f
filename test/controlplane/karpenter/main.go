// Command karpenter is Karpenter with its kwok provider, whose machines are
// only Node objects, so it needs no cloud. It does not use the upstream main
// package for two reasons: like the other parts, it has to end with the test
// run that started it, and `karpenter crds` has to print the definitions of the
// resources that it needs.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	kwokapis "sigs.k8s.io/karpenter/kwok/apis"
	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/apis"
	"sigs.k8s.io/karpenter/pkg/controllers"
	"sigs.k8s.io/karpenter/pkg/controllers/node/health"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/operator"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "crds" {
		must(printDefinitions())
		return
	}
	if os.Getenv("LASTCALL_E2E_EXIT_WITH_PARENT") != "" {
		go exitWithParent()
	}
	must(run())
}

// run starts Karpenter without overlays of instance types, which are off by
// default, and returns when the process is told to stop.
func run() error {
	ctx, op := operator.NewOperator()
	client := op.GetClient()
	types, err := kwok.ConstructInstanceTypes(ctx)
	if err != nil {
		return err
	}
	cloud := kwok.NewCloudProvider(ctx, client, types)
	repairs, err := health.NewRepairPolicyMatcher(ctx, cloud)
	if err != nil {
		return err
	}
	cluster := state.NewCluster(
		op.Clock, client, cloud, state.WithRepairPolicyMatcher(repairs),
	)
	all := controllers.NewControllers(
		ctx, op.Manager, op.Clock, client, op.EventRecorder,
		cloud, cloud, cluster, op.InstanceTypeStore, op.PredictionStore,
	)
	op.WithControllers(ctx, all...).Start(ctx)
	return nil
}

func printDefinitions() error {
	list := map[string]any{
		"apiVersion": "v1",
		"kind":       "List",
		"items":      append(apis.CRDs, kwokapis.CRDs...),
	}
	return json.NewEncoder(os.Stdout).Encode(list)
}

func must(err error) {
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "Cannot run Karpenter:", err)
	os.Exit(1)
}

// exitWithParent ends the process when standard input closes, which happens
// however the parent ended. It is a copy, because the modules share no code.
func exitWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(3)
}
