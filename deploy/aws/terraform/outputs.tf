output "queue_url" {
  description = "The URL of the queue, for --sqs-queue-url."
  value       = aws_sqs_queue.notices.url
}

output "topic_arn" {
  description = "The ARN of the topic, for actions of the type sns."
  value       = aws_sns_topic.departures.arn
}

output "controller_role_arn" {
  description = "The ARN of the controller's role; with IRSA, for the annotation eks.amazonaws.com/role-arn of the ServiceAccount."
  value       = aws_iam_role.controller.arn
}

output "responder_name" {
  description = "The name of the function, for actions of the type lambda; null if there is no function."
  value       = one(aws_lambda_function.responder[*].function_name)
}
