import { fakeKubectl } from "./fake-kubectl.ts";
import { type FakeTools, makeFakeTools } from "./fake-tools.ts";

/**
 * The account 123456789012 in bash, with EKS, IAM, SQS and EventBridge as far as the setup uses
 * them. As in AWS, a thing can be created only once, a thing that others depend on cannot be
 * deleted. An error has the exit code 254 (255 in `version-1`) and the form of the AWS CLI: its
 * return codes are documented, and the form is that of botocore's ClientError.
 */
const aws = `
operation=""
IFS=-
for word in $2; do operation+="\${word^}"; done
IFS='|'
fail() {
  local text="An error occurred ($1) when calling the $operation operation: \${2-for the test}"
  if has version-1; then echo $'\\n'"$text" >&2; exit 255; fi
  echo "$text" >&2
  exit 254
}
ours() { if has "$1"; then get "$1"; else fail "$2"; fi; }
case "$1 $2" in
  "sts get-caller-identity") echo 123456789012 ;;
  "eks describe-cluster") has cluster || fail ResourceNotFoundException; get cluster ;;
  "eks describe-addon") has addon || fail ResourceNotFoundException; echo ACTIVE ;;
  "eks list-pod-identity-associations")
    has cluster || fail ResourceNotFoundException
    if has association; then echo a-1; else echo None; fi ;;
  "eks describe-pod-identity-association")
    found="$(get association)"
    case "$(flag --query)" in
      association.roleArn) echo "\${found% *}" ;;
      association.associationArn) echo "arn:aws:eks:eu-west-1:123456789012:podidentityassociation/main/a-1" ;;
      *) if [[ "$found" == *' '* ]]; then echo "\${found#* }"; else echo None; fi ;;
    esac ;;
  "eks create-pod-identity-association")
    ! has association || fail ResourceInUseException
    if has slow-role; then drop slow-role; fail InvalidParameterException "the role is not there yet"; fi
    has role || fail InvalidParameterException
    tag="$(flag --tags)"; put association "$(flag --role-arn) \${tag##*=}" ;;
  "eks delete-pod-identity-association") has association || refuse "none"; drop association ;;
  "iam get-open-id-connect-provider") has provider || fail NoSuchEntity; flag --open-id-connect-provider-arn ;;
  "iam list-role-tags") ours role NoSuchEntity ;;
  "iam create-role")
    ! has role || fail EntityAlreadyExists
    tag="$(flag --tags)"; put role "\${tag##*Value=}"; put trust "$(flag --assume-role-policy-document)" ;;
  "iam update-assume-role-policy") has role || fail NoSuchEntity; put trust "$(flag --policy-document)" ;;
  "iam put-role-policy") has role || fail NoSuchEntity; put policy "$(flag --policy-document)" ;;
  "iam get-role-policy") has policy || fail NoSuchEntity; echo lastcall ;;
  "iam delete-role-policy") has policy || fail NoSuchEntity; drop policy ;;
  "iam delete-role") has role || fail NoSuchEntity; ! has policy || fail DeleteConflict; drop role; drop trust ;;
  "sqs get-queue-url")
    # The same words, whether there is no queue or no access to it.
    has queue && ! has queue-hidden && ! has queue-unlisted ||
      fail AWS.SimpleQueueService.NonExistentQueue "The specified queue does not exist or you do not have access to it."
    echo "https://sqs.eu-west-1.amazonaws.com/123456789012/$(flag --queue-name)" ;;
  "sqs list-queues")
    if has queue && ! has queue-unlisted; then echo "https://sqs.eu-west-1.amazonaws.com/123456789012/$(flag --queue-name-prefix)"
    else echo None; fi ;;
  "sqs list-queue-tags") ! has queue-hidden || fail AccessDenied; get queue ;;
  "sqs create-queue")
    # An existing queue is no error, unless its attributes differ.
    if has queue; then
      [[ "$line" != *'|--attributes|'* || "$(flag --attributes)" == "$(get queue-attributes)" ]] || fail QueueAlreadyExists
    else
      tag="$(flag --tags)"; put queue "\${tag##*=}"; put queue-attributes "$(flag --attributes)"
    fi
    echo "https://sqs.eu-west-1.amazonaws.com/123456789012/$(flag --queue-name)" ;;
  "sqs set-queue-attributes") has queue || refuse "none"; put queue-attributes "$(flag --attributes)" ;;
  "sqs delete-queue") has queue || refuse "none"; drop queue; ! has queue-attributes || drop queue-attributes ;;
  "events describe-rule")
    rule="rule-$(flag --name)"; has "$rule" || fail ResourceNotFoundException
    echo "arn:aws:events:eu-west-1:123456789012:rule/$(flag --name)" ;;
  "events list-tags-for-resource") arn="$(flag --resource-arn)"; get "rule-\${arn##*/}" ;;
  "events put-rule")
    # The tags of an update are ignored, according to the API reference of PutRule.
    tag="$(flag --tags)"; has "rule-$(flag --name)" || put "rule-$(flag --name)" "\${tag##*Value=}"
    put "pattern-$(flag --name)" "$(flag --event-pattern)" ;;
  "events put-targets")
    has "rule-$(flag --rule)" || fail ResourceNotFoundException
    if has no-target; then echo 1; else put "target-$(flag --rule)" "$(flag --targets)"; echo 0; fi ;;
  "events list-targets-by-rule") ! has "target-$(flag --rule)" || echo lastcall ;;
  "events remove-targets") has "target-$(flag --rule)" || fail ResourceNotFoundException; drop "target-$(flag --rule)" ;;
  "events delete-rule") ! has "target-$(flag --name)" || fail ValidationException "it has targets"; drop "rule-$(flag --name)"; drop "pattern-$(flag --name)" ;;
  *) refuse "no such command: $*" ;;
esac
`;

export function makeFakeAws(): FakeTools {
  return makeFakeTools({ aws, kubectl: fakeKubectl });
}
