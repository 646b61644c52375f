//go:build !nokubelet

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/configz"
	remote "k8s.io/cri-client/pkg"
	fakeremote "k8s.io/cri-client/pkg/fake"
	kubeletconfigv1beta1 "k8s.io/kubelet/config/v1beta1"
	kubeletapp "k8s.io/kubernetes/cmd/kubelet/app"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	"k8s.io/kubernetes/pkg/cluster/ports"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	kubeletscheme "k8s.io/kubernetes/pkg/kubelet/apis/config/scheme"
	cadvisortest "k8s.io/kubernetes/pkg/kubelet/cadvisor/testing"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubelet/kubeletconfig/configfiles"
	"k8s.io/kubernetes/pkg/kubemark"
	utilfs "k8s.io/kubernetes/pkg/util/filesystem"
)

func init() { parts["kubelet"] = runKubelet }

type kubeletSettings struct {
	name, kubeconfig, config, rootDirectory string
}

// runKubelet runs a kubelet without containers: its server, authentication and
// authorization are those that Kubernetes builds, with the configuration from a
// file. It needs neither root nor a container runtime, and it does not write
// its Node object.
func runKubelet() {
	var given kubeletSettings
	flag.StringVar(&given.name, "name", "", "the Node's name")
	flag.StringVar(&given.kubeconfig, "kubeconfig", "", "who may ask for reviews of tokens and access")
	flag.StringVar(&given.config, "config", "", "a KubeletConfiguration")
	flag.StringVar(&given.rootDirectory, "root-dir", "", "where it keeps its files")
	flag.Parse()
	if err := serveKubelet(context.Background(), given); err != nil {
		fmt.Fprintf(os.Stderr, "Cannot run the kubelet: %v\n", err)
		os.Exit(1)
	}
}

func serveKubelet(ctx context.Context, given kubeletSettings) error {
	// Upstream creates the container socket in TMPDIR; here it is removed with
	// the root directory.
	if err := os.Setenv("TMPDIR", given.rootDirectory); err != nil {
		return err
	}
	access, err := clientcmd.BuildConfigFromFlags("", given.kubeconfig)
	if err != nil {
		return err
	}
	client, err := clientset.NewForConfig(access)
	if err != nil {
		return err
	}
	flags, config, err := configureKubelet(ctx, given)
	if err != nil {
		return err
	}
	if err := publishConfiguration(config); err != nil {
		return err
	}
	endpoint, err := fakeremote.GenerateEndpoint()
	if err != nil {
		return err
	}
	containers := fakeremote.NewFakeRemoteRuntime()
	if err := containers.Start(endpoint); err != nil {
		return err
	}
	defer containers.Stop()
	runtime, err := remote.NewRemoteRuntimeService(ctx, endpoint, 15*time.Second, noop.NewTracerProvider(), false)
	if err != nil {
		return err
	}
	kubelet := kubemark.NewHollowKubelet(flags, config, client, client,
		&cadvisortest.Fake{NodeName: given.name}, containers.ImageService, runtime, cm.NewStubContainerManager())
	auth, reload, err := kubeletapp.BuildAuth(types.NodeName(given.name), client, *config)
	if err != nil {
		return err
	}
	reload(ctx.Done())
	tls, err := kubeletapp.InitializeTLS(ctx, flags, config)
	if err != nil {
		return err
	}
	kubelet.KubeletDeps.Auth = auth
	kubelet.KubeletDeps.TLSOptions = tls
	// Without a client it runs standalone and does not write its Node.
	kubelet.KubeletDeps.KubeClient = nil
	kubelet.KubeletDeps.HeartbeatClient = nil
	kubelet.Run(ctx)
	return nil
}

// configureKubelet applies the settings from the file and sets all others as a
// kubelet without containers needs them.
func configureKubelet(ctx context.Context, given kubeletSettings) (*options.KubeletFlags, *kubeletconfig.KubeletConfiguration, error) {
	flags, config := kubemark.GetHollowKubeletConfig(&kubemark.HollowKubeletOptions{
		NodeName: given.name, KubeletPort: ports.KubeletPort, MaxPods: 110,
	})
	loader, err := configfiles.NewFsLoader(&utilfs.DefaultFs{}, given.config)
	if err != nil {
		return nil, nil, err
	}
	read, err := loader.Load(ctx)
	if err != nil {
		return nil, nil, err
	}
	// Upstream has created this folder in /tmp, for static pods and logs.
	if err := os.RemoveAll(flags.RootDirectory); err != nil {
		return nil, nil, err
	}
	config.StaticPodPath = ""
	config.PodLogsDir = filepath.Join(given.rootDirectory, "logs")
	flags.RootDirectory = given.rootDirectory
	flags.CertDirectory = given.rootDirectory
	config.Address = read.Address
	config.TLSCertFile = read.TLSCertFile
	config.TLSPrivateKeyFile = read.TLSPrivateKeyFile
	config.Authentication = read.Authentication
	config.Authorization = read.Authorization
	config.ShutdownGracePeriod = read.ShutdownGracePeriod
	config.ShutdownGracePeriodCriticalPods = read.ShutdownGracePeriodCriticalPods
	config.ShutdownGracePeriodByPodPriority = read.ShutdownGracePeriodByPodPriority
	return flags, config, nil
}

// publishConfiguration serves the configuration at /configz, as the kubelet's
// own startup code does.
func publishConfiguration(config *kubeletconfig.KubeletConfiguration) error {
	page, err := configz.New("kubeletconfig")
	if err != nil {
		return err
	}
	scheme, _, err := kubeletscheme.NewSchemeAndCodecs()
	if err != nil {
		return err
	}
	versioned := &kubeletconfigv1beta1.KubeletConfiguration{}
	if err := scheme.Convert(config, versioned, nil); err != nil {
		return err
	}
	versioned.GetObjectKind().SetGroupVersionKind(
		kubeletconfigv1beta1.SchemeGroupVersion.WithKind("KubeletConfiguration"))
	return page.Set(versioned)
}
