variable "cluster_name" {
  description = "The EKS cluster whose machines leave on a plan."
  type        = string
}

variable "name" {
  description = "What the queue, the rules, the topic, the function and the roles are called."
  type        = string
  default     = "lastcall"

  validation {
    # The second rule is called -health, and the name of a rule has at most 64 characters.
    condition     = can(regex("^[a-zA-Z0-9_-]{1,50}$", var.name))
    error_message = "The name has 1 to 50 letters, digits, dashes and underscores."
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
  description = "How the ServiceAccount comes to the role: PodIdentity or IRSA."
  type        = string
  default     = "PodIdentity"

  validation {
    condition     = contains(["PodIdentity", "IRSA"], var.identity)
    error_message = "The identity is PodIdentity or IRSA."
  }
}

variable "oidc_provider_arn" {
  description = "With IRSA: the IAM OIDC provider of the cluster."
  type        = string
  default     = null
}

variable "release_chart" {
  description = "Where the Helm chart is: a folder, an archive or an oci:// reference; null installs nothing."
  type        = string
  default     = null
}

variable "policies" {
  description = "The chart's policies: a list of {name, spec}, as in the reference of DeparturePolicy."
  type        = any
  default     = []
}

variable "responder_zip" {
  description = "An archive of dist/lambda/index.mjs; null makes no function."
  type        = string
  default     = null
}

variable "responder_actions" {
  description = "What the function does: the list of spec.actions of a policy."
  type        = any
  default     = []
}

variable "responder_event_fields" {
  description = "Where in somebody else's invocation our fields are, such as {instanceId = \"detail.id\"}."
  type        = map(string)
  default     = {}
}

variable "responder_managed_tag" {
  description = "KEY or KEY=VALUE: of what EventBridge says only instances with this tag count; null: all of the account's."
  type        = string
  default     = null
}

variable "responder_environment" {
  description = "What else the function is told, such as {LASTCALL_ACTION_HOSTS = \"hooks.slack.com\"}, and its secrets: LASTCALL_SECRET_SLACK_TOKEN, or all in LASTCALL_SECRETS."
  type        = map(string)
  default     = {}
}

variable "responder_listens" {
  description = "Whether EventBridge invokes the function by itself, without a controller."
  type        = bool
  default     = false
}

variable "alarm_emails" {
  description = "Who subscribes to the topic by mail."
  type        = list(string)
  default     = []
}

variable "tags" {
  description = "Tags of everything that is made."
  type        = map(string)
  default     = {}
}
