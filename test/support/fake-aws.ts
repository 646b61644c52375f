import { type FakeTools, makeFakeTools } from "./fake-tools.ts";

/**
 * The account 123456789012 in bash, with EKS, IAM, SQS and EventBridge as far as the setup uses
 * them. As in AWS, a thing can be created only once, a thing that others depend on cannot be
 * deleted, and an error names what is missing.
 */
const aws = `
ours() { if has "$1"; then get "$1"; else refuse "An error occurred ($2) when calling the operation"; fi; }
case "$1 $2" in
  "sts get-caller-identity") echo 123456789012 ;;
  "eks describe-cluster") has cluster || refuse "(ResourceNotFoundException)"; get cluster ;;
  "eks describe-addon") has addon || refuse "(ResourceNotFoundException)"; echo ACTIVE ;;
  "eks list-pod-identity-associations")
    has cluster || refuse "(ResourceNotFoundException)"
    if has association; then echo a-1; else echo None; fi ;;
  "eks describe-pod-identity-association") get association ;;
  "eks create-pod-identity-association")
    ! has association || refuse "(ResourceInUseException)"
    if has slow-role; then drop slow-role; refuse "(InvalidParameterException) the role is not there yet"; fi
    has role || refuse "(InvalidParameterException)"
    put association "$(flag --role-arn)" ;;
  "eks delete-pod-identity-association") has association || refuse "none"; drop association ;;
  "iam get-open-id-connect-provider") has provider || refuse "(NoSuchEntity)"; flag --open-id-connect-provider-arn ;;
  "iam list-role-tags") ours role NoSuchEntity ;;
  "iam create-role")
    ! has role || refuse "(EntityAlreadyExists)"
    tag="$(flag --tags)"; put role "\${tag##*Value=}"; put trust "$(flag --assume-role-policy-document)" ;;
  "iam update-assume-role-policy") has role || refuse "(NoSuchEntity)"; put trust "$(flag --policy-document)" ;;
  "iam put-role-policy") has role || refuse "(NoSuchEntity)"; put policy "$(flag --policy-document)" ;;
  "iam delete-role-policy") has policy || refuse "(NoSuchEntity)"; drop policy ;;
  "iam delete-role") has role || refuse "(NoSuchEntity)"; ! has policy || refuse "(DeleteConflict)"; drop role; drop trust ;;
  "sqs get-queue-url")
    has queue || refuse "(AWS.SimpleQueueService.NonExistentQueue)"
    echo "https://sqs.eu-west-1.amazonaws.com/123456789012/$(flag --queue-name)" ;;
  "sqs list-queue-tags") get queue ;;
  "sqs create-queue")
    ! has queue || refuse "(QueueAlreadyExists)"
    tag="$(flag --tags)"; put queue "\${tag##*=}"
    echo "https://sqs.eu-west-1.amazonaws.com/123456789012/$(flag --queue-name)" ;;
  "sqs set-queue-attributes") has queue || refuse "none"; put queue-attributes "$(flag --attributes)" ;;
  "sqs delete-queue") has queue || refuse "none"; drop queue; drop queue-attributes ;;
  "events describe-rule")
    rule="rule-$(flag --name)"; has "$rule" || refuse "(ResourceNotFoundException)"
    echo "arn:aws:events:eu-west-1:123456789012:rule/$(flag --name)" ;;
  "events list-tags-for-resource") arn="$(flag --resource-arn)"; get "rule-\${arn##*/}" ;;
  "events put-rule") tag="$(flag --tags)"; put "rule-$(flag --name)" "\${tag##*Value=}"; put "pattern-$(flag --name)" "$(flag --event-pattern)" ;;
  "events put-targets")
    has "rule-$(flag --rule)" || refuse "(ResourceNotFoundException)"
    if has no-target; then echo 1; else put "target-$(flag --rule)" "$(flag --targets)"; echo 0; fi ;;
  "events remove-targets") drop "target-$(flag --rule)" ;;
  "events delete-rule") ! has "target-$(flag --name)" || refuse "(ValidationException) it has targets"; drop "rule-$(flag --name)"; drop "pattern-$(flag --name)" ;;
  *) refuse "no such command: $*" ;;
esac
`;

/** A kubectl that supports one ServiceAccount and one annotation on it, until `cluster-gone`. */
export const fakeKubectl = `
! has cluster-gone || refuse "Unable to connect to the server: no such host"
case "$*" in
  *'|get|serviceaccount|'*'|--ignore-not-found|'*) ! has annotation || get annotation ;;
  *'|get|serviceaccount|'*) has service-account || refuse "serviceaccounts not found" ;;
  *'|annotate|serviceaccount|'*-) has annotation || refuse "none"; drop annotation ;;
  *'|annotate|serviceaccount|'*) has service-account || refuse "serviceaccounts not found"; put annotation "\${line##*=}" ;;
  *) refuse "no such command: $*" ;;
esac
`;

export function makeFakeAws(): FakeTools {
  return makeFakeTools({ aws, kubectl: fakeKubectl });
}
