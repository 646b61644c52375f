variable "cluster_name" {
  description = "The EKS cluster that Lastcall manages."
  type        = string
}

variable "name" {
  description = "The name of the queue, the rules, the topic, the function and the roles."
  type        = string
  default     = "lastcall"

  validation {
    # The second rule has the suffix -health, and the name of a rule has at most 64 characters.
    condition     = can(regex("^[a-zA-Z0-9_-]{1,50}$", var.name))
    error_message = "The name must have 1 to 50 letters, digits, dashes and underscores."
  }
}

variable "namespace" {
  description = "The namespace of the controller and its ServiceAccount."
  type        = string
  default     = "lastcall"
}

variable "service_account" {
  description = "The controller's ServiceAccount."
  type        = string
  default     = "lastcall"
}

variable "identity" {
  description = "How the ServiceAccount assumes the role: PodIdentity or IRSA."
  type        = string
  default     = "PodIdentity"

  validation {
    condition     = contains(["PodIdentity", "IRSA"], var.identity)
    error_message = "The identity must be PodIdentity or IRSA."
  }
}

variable "oidc_provider_arn" {
  description = "With IRSA: the IAM OIDC provider of the cluster."
  type        = string
  default     = null
}

variable "release_chart" {
  description = "The Helm chart: a folder, an archive or an oci:// reference; null installs nothing."
  type        = string
  default     = null
}

variable "controller_image" {
  description = "With release_chart: the controller's image in your registry, {repository, tag, digest}; none is published (docs/images.md)."
  type        = object({ repository = string, tag = optional(string), digest = optional(string) })
  default     = null
}

variable "agent_image" {
  description = "The same for the image of the agents; not needed if release_values has agent = {enabled = false}."
  type        = object({ repository = string, tag = optional(string), digest = optional(string) })
  default     = null
}

variable "action_hosts" {
  description = "The hosts that policies may name, in actions and in gates.alerts.url: host, host:port or *.domain."
  type        = list(string)
  default     = []
}

variable "release_values" {
  description = "Further values of the chart, which take precedence over those that the module sets."
  type        = any
  default     = {}
}

variable "policies" {
  description = "The chart's policies: a list of {name, spec}, as in the reference of DeparturePolicy."
  type        = any
  default     = []
}

variable "responder_zip" {
  description = "An archive of dist/lambda/index.mjs; null creates no function."
  type        = string
  default     = null
}

variable "responder_actions" {
  description = "The actions of the function: a list like spec.actions of a policy."
  type        = any
  default     = []
}

variable "responder_event_fields" {
  description = "Maps the fields of another invocation format, such as {instanceId = \"detail.id\"}."
  type        = map(string)
  default     = {}
}

variable "responder_managed_tag" {
  description = "KEY or KEY=VALUE: handle only EventBridge events for instances with this tag; null: for all instances of the account."
  type        = string
  default     = null
}

variable "responder_environment" {
  description = "Additional environment variables of the function, such as {LASTCALL_ACTION_HOSTS = \"hooks.slack.com\"}, and its secrets: LASTCALL_SECRET_SLACK_TOKEN, or all in LASTCALL_SECRETS."
  type        = map(string)
  default     = {}
}

variable "responder_listens" {
  description = "Whether EventBridge invokes the function directly, without a controller."
  type        = bool
  default     = false
}

variable "alarm_emails" {
  description = "Email addresses to subscribe to the topic."
  type        = list(string)
  default     = []
}

variable "tags" {
  description = "Tags for all resources."
  type        = map(string)
  default     = {}
}
